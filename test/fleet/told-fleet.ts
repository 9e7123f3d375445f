import type { Fleet, FleetNode, NodeFault, NodeState } from '../../src/fleet/fleet.ts';
import type { FleetSources } from '../../src/fleet/pages/sources.ts';

export const AT = '2026-11-30T12:00:00.000Z';
export const NOW_MS = Date.parse(AT) + 15_000;

const FAULT: NodeFault = {
  family: 'nvidia',
  device: 'GPU-0',
  name: 'GPU 0',
  model: 'H100 SXM',
  driver: '580.105',
  condition: 'GpuLost',
  reason: 'Xid79',
  severity: 'fatal',
  remedy: 'reboot',
  since: '2026-11-30T11:20:00.000Z',
  hit: ['training/llm-0'],
};
const SLOW: NodeFault = {
  ...FAULT,
  condition: 'ThermalSlowdown',
  reason: 'HwThermal',
  severity: 'degraded',
  remedy: 'check-cooling',
  hit: [],
};

export function nodeOf(name: string, state: NodeState, more: Partial<FleetNode> = {}): FleetNode {
  return {
    name,
    state,
    devices: { healthy: 8 },
    families: ['nvidia'],
    models: ['H100 SXM'],
    namespaces: ['training'],
    held: 6,
    utilizationRatio: 0.62,
    faults: state === 'unhealthy' ? [FAULT, SLOW] : state === 'degraded' ? [SLOW] : [],
    ...((state === 'silent' || state === 'old') && { seenAt: '2026-11-30T11:41:00.000Z' }),
    ...more,
  };
}

/** A fleet of so many nodes in zones, whose first ones are not well. */
export function fleetOf(count: number, more: Partial<Fleet> = {}, nameOf = (at: number): string => `gpu-node-${at}`): Fleet {
  const states: readonly NodeState[] = ['unhealthy', 'unhealthy', 'silent', 'old', 'degraded', 'unknown'];
  const nodes = Array.from({ length: count }, (_, at) =>
    nodeOf(nameOf((at * 7) % count), states[at] ?? 'healthy', { group: `zone-${'abc'[at % 3]}`, utilizationRatio: (at % 11) / 10 }),
  );
  const names = nodes.map(({ name }) => name);
  return {
    at: AT,
    nodes,
    faults: [
      {
        family: 'nvidia',
        condition: 'GpuLost',
        reason: 'Xid79',
        severity: 'fatal',
        devices: 9,
        nodes: names.slice(0, 7),
        hit: ['training/llm-0', 'training/llm-1'],
        shared: [{ fact: 'driver', value: '580.105', devices: 7 }],
      },
    ],
    capacity: [
      { family: 'nvidia', kind: 'gpu', model: 'H100 SXM', devices: 160, held: 120, free: 22, outOfService: 2, unknown: 16, waiting: 3 },
    ],
    namespaces: [
      { namespace: 'training', heldHours: 900.4, idleHours: 310.2, idleCost: 775.5, currency: 'EUR', devicesNow: 80 },
      { namespace: 'research', devicesNow: 4 },
    ],
    outliers: [{ node: names[1] ?? '', family: 'nvidia', device: 'GPU-4', model: 'H100 SXM', what: 'clock', value: 1.2e9, twins: 1.98e9 }],
    problems: [],
    ...more,
  };
}

const HOURS = Array.from({ length: 97 }, (_, at) => Date.parse(AT) - (96 - at) * 900_000);

export function sourcesOf(fleet: Fleet | undefined, more: Partial<FleetSources> = {}): FleetSources {
  return {
    version: '0.0.0',
    fleet: () => fleet,
    sentence: ({ nodes }) => `2 of ${nodes.length} nodes need hands: ${nodes[0]?.name} has a lost GPU, training/llm-0 is hit`,
    filter: ({ nodes }, text) => nodes.filter(({ state }) => text === `state:${state}`),
    node: async ({ faults }) => ({
      devices: Array.from({ length: 8 }, (_, at) => ({
        family: 'nvidia',
        id: `GPU-${at}`,
        name: `GPU ${at}`,
        model: 'H100 SXM',
        state: at === 0 && faults.length > 0 ? ('unhealthy' as const) : ('healthy' as const),
        ...(at > 0 && { utilizationRatio: at / 10 }),
        ...(at < 7 && { holders: at < 6 ? ['training/llm-0'] : [] }),
      })),
      curves: [
        {
          title: 'Busy',
          metric: 'device_utilization_ratio',
          times: HOURS,
          lines: [{ name: '', values: HOURS.map((_, at) => (at > 80 && at < 86 ? null : 0.5 + 0.4 * Math.sin(at / 5))) }],
        },
        {
          title: 'Temperature',
          metric: 'device_temperature_celsius',
          times: HOURS,
          lines: [{ name: 'hottest', values: HOURS.map((_, at) => 60 + (at % 9)) }],
        },
      ],
      problems: [],
    }),
    held: async () => ({
      held: [
        {
          node: 'gpu-node-0',
          family: 'nvidia',
          id: 'GPU-0',
          name: 'GPU 0',
          pod: 'llm-0',
          isHeld: true,
          heldHours: 20,
          busyHours: 12.5,
          idleHours: 7.5,
        },
        {
          node: 'gpu-node-7',
          family: 'nvidia',
          id: 'GPU-3',
          name: 'GPU 3',
          pod: 'llm-0',
          isHeld: false,
          heldHours: 4,
          busyHours: 1,
          idleHours: 3,
        },
      ],
      problems: [],
    }),
    now: () => NOW_MS,
    ...more,
  };
}
