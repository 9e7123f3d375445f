/** One series of a simulated fleet. */
export interface SimulatedSeries {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** undefined while the series is not there. */
  valueAt(seconds: number): number | undefined;
}

const NODES = 20;
const DEVICES = 8;
const HOUR = 3_600;
/** How long a fault of the story lasts, and how long until it comes again. */
const STORY_SECONDS = 600;
const TYPE = { family: 'nvidia', kind: 'gpu', model: 'H100 80GB' };
const DRIVERS = ['580.105.08', '570.86.15'] as const;
const NAMESPACES = ['training', 'inference', 'research'] as const;

interface Fault {
  readonly node: number;
  readonly device: number;
  readonly condition: string;
  readonly reason: string;
  readonly severity: 'fatal' | 'degraded';
  readonly remedy: string;
  /** It comes and goes; without it, it lasts. */
  readonly isStory?: true;
}

const LOST = { condition: 'GpuLost', reason: 'Xid79', severity: 'fatal', remedy: 'power-cycle' } as const;
const SLOW = { condition: 'ThermalSlowdown', reason: 'HwThermal', severity: 'degraded', remedy: 'check-cooling' } as const;
const FAULTS: readonly Fault[] = [
  { node: 17, device: 3, ...LOST },
  { node: 4, device: 0, ...SLOW },
  { node: 6, device: 1, ...SLOW },
  { node: 8, device: 5, ...SLOW },
  { node: 11, device: 2, ...LOST, isStory: true },
];
const SILENT = 13;

const nameOf = (node: number): string => `gpu-${String(node).padStart(2, '0')}`;
const namespaceOf = (node: number): string => NAMESPACES[node % NAMESPACES.length] ?? NAMESPACES[0];
const isFree = (node: number, device: number): boolean => (node + device) % 7 === 0;
const lasts = ({ isStory }: Fault, seconds: number): boolean => isStory !== true || seconds % (2 * STORY_SECONDS) < STORY_SECONDS;
const DEVICE_NUMBERS = Array.from({ length: DEVICES }, (_, device) => device);
const heldOf = (node: number): readonly number[] => DEVICE_NUMBERS.filter((device) => !isFree(node, device));
/** How much of its time a held device does nothing. */
const IDLE: Readonly<Record<string, number>> = { training: 0.1, inference: 0.4, research: 0.7 };
/** Between 0 and 1, slow and the same at each look. */
const wave = (node: number, seconds: number): number => 0.5 + 0.45 * Math.sin(seconds / HOUR + node * 1.7);

/**
 * The series that the rules record for 20 nodes. Three devices have the same fault, one is lost, one is lost from time to time, and one agent is silent.
 * `begin`: seconds.
 */
export function simulatedFleet(begin: number): readonly SimulatedSeries[] {
  const nodes = Array.from({ length: NODES }, (_, node) => node);
  return [
    ...nodes.flatMap((node) => seriesOfNode(node, begin)),
    ...FAULTS.flatMap((fault) => seriesOfFault(fault, begin)),
    ...NAMESPACES.flatMap(seriesOfNamespace),
  ];
}

/** A lost device has no reading. */
function useOf(node: number, device: number, seconds: number): number | undefined {
  const isLost = FAULTS.some((one) => one.node === node && one.device === device && one.severity === 'fatal' && lasts(one, seconds));
  return isLost ? undefined : isFree(node, device) ? 0 : wave(node + device / 10, seconds);
}

function meanUse(node: number, seconds: number): number {
  const uses = DEVICE_NUMBERS.flatMap((device) => useOf(node, device, seconds) ?? []);
  return uses.reduce((sum, use) => sum + use, 0) / uses.length;
}

function seriesOfNode(node: number, begin: number): readonly SimulatedSeries[] {
  const of = (name: string, labels: object, valueAt: (seconds: number) => number | undefined): SimulatedSeries => ({
    name,
    labels: { node: nameOf(node), ...labels },
    // A silent agent was heard until an hour before.
    valueAt: (seconds) => (node === SILENT && seconds > begin - HOUR ? undefined : valueAt(seconds)),
  });
  const sick = (seconds: number, severity: string): number =>
    FAULTS.filter((one) => one.node === node && one.severity === severity && lasts(one, seconds)).length;
  const well = (seconds: number): number => DEVICES - sick(seconds, 'fatal') - sick(seconds, 'degraded');
  const sickAndHeld = (seconds: number, severity: string): number =>
    FAULTS.filter((one) => one.node === node && one.severity === severity && lasts(one, seconds) && !isFree(node, one.device)).length;
  return [
    of('node:device_agent_heard:timestamp_seconds', {}, (seconds) => seconds),
    of('node:device_agent_snapshots:changes5m', {}, () => 30),
    of('node:devices_without_parts:count', TYPE, () => DEVICES),
    of('node:devices_by_level:count', { ...TYPE, level: '1' }, well),
    of('node:devices_by_level:count', { ...TYPE, level: '2' }, (seconds) => sick(seconds, 'degraded')),
    of('node:devices_by_level:count', { ...TYPE, level: '3' }, (seconds) => sick(seconds, 'fatal')),
    of(
      'node:devices_held_by_level:count',
      { ...TYPE, level: '1' },
      (seconds) => heldOf(node).length - sickAndHeld(seconds, 'degraded') - sickAndHeld(seconds, 'fatal'),
    ),
    of('node:devices_held_by_level:count', { ...TYPE, level: '2' }, (seconds) => sickAndHeld(seconds, 'degraded')),
    of('node:devices_held_by_level:count', { ...TYPE, level: '3' }, (seconds) => sickAndHeld(seconds, 'fatal')),
    of('node:device_utilization_ratio:avg', TYPE, (seconds) => meanUse(node, seconds)),
    of('node:device_power_watts:sum', TYPE, (seconds) => DEVICES * (120 + 500 * meanUse(node, seconds))),
    of('kube_node_labels', { label_topology_kubernetes_io_zone: `zone-${'abc'[node % 3]}` }, () => 1),
    ...DEVICE_NUMBERS.flatMap((device) => {
      const labels = { device: `GPU-${nameOf(node)}-${device}` };
      const fault = FAULTS.find((one) => one.node === node && one.device === device);
      const level = (seconds: number): number => (fault === undefined || !lasts(fault, seconds) ? 1 : fault.severity === 'fatal' ? 3 : 2);
      const holder = { namespace: namespaceOf(node), pod: `job-${node}`, container: 'main', resource: `${TYPE.family}.com/${TYPE.kind}` };
      return [
        of('device:device_info:max', { ...labels, ...TYPE }, () => 1),
        of('device:device_health_level:max', labels, level),
        of('device:device_utilization_ratio:max', labels, (seconds) =>
          isFree(node, device) ? undefined : wave(node + device / 10, seconds),
        ),
        ...(isFree(node, device)
          ? []
          : [
              of('container_device_allocation', { ...labels, ...holder }, () => 1),
              ...(['share', 'idle', 'unobserved'] as const).map((what) =>
                of(`container_device_${what}_seconds_total`, { ...labels, ...holder }, (seconds) => {
                  const share = what === 'share' ? 1 : what === 'idle' ? (IDLE[holder.namespace] ?? 0) : 0;
                  return share * (seconds - begin + 12 * HOUR);
                }),
              ),
              of(
                'device:container_device_allocation:max',
                { ...labels, holder_namespace: holder.namespace, resource: holder.resource },
                () => 1,
              ),
            ]),
      ];
    }),
  ];
}

function seriesOfFault(fault: Fault, begin: number): readonly SimulatedSeries[] {
  const { node, device, condition, reason, severity, remedy } = fault;
  const labels = { node: nameOf(node), device: `GPU-${nameOf(node)}-${device}` };
  const driver = DRIVERS[severity === 'fatal' ? 1 : 0];
  const since = (seconds: number): number => (fault.isStory === true ? seconds - (seconds % (2 * STORY_SECONDS)) : begin - HOUR / 2);
  const facts = { ...TYPE, driver, condition, reason, severity, remedy, index: String(device) };
  return [
    {
      name: 'device:device_fault:since_timestamp_seconds',
      labels: { ...labels, ...facts },
      valueAt: (seconds) => (lasts(fault, seconds) ? since(seconds) : undefined),
    },
    {
      name: 'device:device_fault_holder:max',
      labels: { ...labels, holder_namespace: namespaceOf(node), holder_pod: `job-${node}` },
      valueAt: (seconds) => (lasts(fault, seconds) && !isFree(node, device) ? 1 : undefined),
    },
  ];
}

function seriesOfNamespace(namespace: string): readonly SimulatedSeries[] {
  const labels = { holder_namespace: namespace };
  const nodes = Array.from({ length: NODES }, (_, node) => node).filter((node) => namespaceOf(node) === namespace);
  const held = nodes.reduce((sum, node) => sum + (node === SILENT ? 0 : heldOf(node).length), 0);
  return [
    { name: 'namespace:devices_held:count', labels, valueAt: () => held },
    { name: 'namespace:device_share_hours:sum1d', labels: { ...labels, ...TYPE }, valueAt: () => held * 24 },
    { name: 'namespace:device_idle_share_hours:sum1d', labels: { ...labels, ...TYPE }, valueAt: () => held * 24 * (IDLE[namespace] ?? 0) },
  ];
}

/** The series as OpenMetrics with times, from `from` to `until`, each minute. A series that ends is there for five minutes more: stored samples have no mark of it. */
export function openMetricsOf(series: readonly SimulatedSeries[], from: number, until: number): string {
  const byName = new Map<string, string[]>();
  for (const one of series) {
    const head = `${one.name}{${Object.entries(one.labels)
      .map(([label, value]) => `${label}="${value}"`)
      .join(',')}}`;
    const lines = byName.get(one.name) ?? [];
    byName.set(one.name, lines);
    for (let at = from; at <= until; at += 60) {
      const value = one.valueAt(at);
      if (value !== undefined) lines.push(`${head} ${value} ${at}\n`);
    }
  }
  return `${[...byName.values()].flat().join('')}# EOF\n`;
}
