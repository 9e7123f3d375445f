import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Accounts } from '../../src/accounting/accounts.ts';
import { Assembler, type Judge } from '../../src/agent/assemble.ts';
import type { Inputs } from '../../src/agent/inputs.ts';
import { servedIds } from '../../src/agent/resources.ts';
import { boardOf } from '../../src/board/board.ts';
import type { DeviceView } from '../../src/board/device-view.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import { systemClock } from '../../src/host/clock.ts';
import { FaultLedger } from '../../src/incidents/fault-ledger.ts';
import { carriedAllocations } from '../../src/kubelet/allocations/allocations.ts';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import { type Allocation, allocationKey } from '../../src/model/allocation.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { ConditionSpec } from '../../src/model/health.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import type { CheckpointEntry } from '../../src/model/pod-resources.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { StepCache } from '../../src/model/step-cache.ts';
import { healthByState, kubeletDevices } from '../../src/plugin/offers/inventory.ts';
import { ResourceOffers } from '../../src/plugin/offers/resource-offers.ts';
import { RandomProbe } from '../support/random-collections.ts';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { allocation, familyState, lookAt, podResources } from '../support/snapshots.ts';

const FAMILIES = ['toy', 'wire'];
const TURN_MS = 1_000;
const spec = (name: string, type: MetricSpec['type']): MetricSpec => ({
  name,
  type,
  help: '',
  labels: ['port', 'kind'],
  source: '',
  container: true,
});
const specs = [spec('m0', 'gauge'), spec('m1', 'counter'), spec('m2', 'gauge'), spec('m3', 'counter')];
const newest = { resource: 'example.com/newest', select: { driver: '1' }, pool: 2 };

const condition = (type: string, more: Partial<ConditionSpec>): ConditionSpec => ({
  type,
  class: 'self-clearing',
  severity: 'fatal',
  reasons: [],
  meaning: '',
  remedy: 'inspect',
  source: '',
  forMs: 2 * TURN_MS,
  recoveryMs: 3 * TURN_MS,
  ...more,
});
const conditions = [
  condition('PortDown', {}),
  condition('Xid', { class: 'latched', outOfBand: true }),
  condition('Errors', { class: 'rate', severity: 'degraded', threshold: { growth: 3, windowMs: 5 * TURN_MS } }),
];

const shownOf = (): undefined => undefined;
const limits = { 'allowed-processes': [], 'dirty-mib': 0 };
const accounts = {
  staleAfterMs: 5 * TURN_MS,
  missingRetentionMs: 20 * TURN_MS,
  zeroForMs: 3 * TURN_MS,
  lingerMs: 10 * TURN_MS,
  absentForMs: 2 * TURN_MS,
  activity: new Map(),
  isCounter: (metric: string) => metric === 'm1' || metric === 'm3',
};

/** Creates an assembler with its own judge and records the events. */
function assembler(events: HealthEvent[], faults: FaultLedger): Assembler {
  const { policy } = createPolicy({
    specs: Object.fromEntries(FAMILIES.map((family) => [family, conditions])),
    config: { conditions: { '*.HeldByStranger': { for: '2s' } } },
    use: { 'idle-after': 2 * TURN_MS, 'busy-after': 2 * TURN_MS, 'dirty-after': 2 * TURN_MS },
  });
  const engine = createHealthEngine({ policy });
  const judge: Judge = (devices, { nowMs, monotonicMs }) => {
    const judgement = engine.judge({ devices, monotonicMs }, nowMs);
    events.push(...judgement.events);
    return judgement.verdicts;
  };
  return new Assembler(
    {
      rules: { pools: [{ resource: 'example.com/pool', devices: ['d1*'] }], families: new Map() },
      served: (known) => servedIds([newest], known),
      specs: new Map(specs.map((spec) => [spec.name, spec])),
      staleAfterMs: 5 * TURN_MS,
      missingRetentionMs: 20 * TURN_MS,
      roles: new Map([
        ['toy', 'gpu'],
        ['wire', 'nic'],
      ]),
      use: { activities: new Map([['toy', { isForHoldersOnly: true }]]), idle: {}, limits },
    },
    judge,
    [],
    { accounts: new Accounts(accounts) },
    faults,
  );
}

const exposition = (snapshot: () => Snapshot | undefined): Exposition =>
  createExposition({
    families: FAMILIES.map((name) => ({ name, metrics: specs })),
    snapshot,
    agent: () => ({ node: 'node-1', version: '', podResourcesRequests: [], podResourcesDurations: [] }),
  });

function allocations(pick: Choose): Allocation[] {
  return Array.from({ length: pick(6) }, () => {
    const resource = ['example.com/toy', 'example.com/pool', 'example.com/newest'][pick(3)] as string;
    return allocation({ resource, deviceId: resource === 'example.com/toy' ? `d${pick(5)}` : `${pick(2)}`, pod: `p${pick(3)}` });
  });
}

const entries = (held: readonly Allocation[], pick: Choose): CheckpointEntry[] =>
  held.map(({ pod, container, resource, deviceId }) => ({
    podUid: `${pod}-${pick(2)}`,
    container,
    resource,
    deviceIds: [deviceId],
  }));

/** What the plugin offers of the snapshot. */
function offersOf(snapshot: () => Snapshot | undefined): ResourceOffers {
  const store = { snapshot, subscribe: () => () => {} };
  const resource = { resource: 'example.com/toy', select: { family: 'toy' } };
  return new ResourceOffers(resource, { store, healthOf: healthByState, clock: systemClock, missingRetentionMs: 0, rivals: [] });
}

describe('a snapshot', () => {
  it.each(Array.from({ length: repetitions(3, 15) }, (_, seed) => seed + 1))(
    'is the same for readings that share objects and for readings that share none (seed %i)',
    async (seed) => {
      const pick = seeded(seed);
      const parts = FAMILIES.map((family) => ({
        family,
        probe: new RandomProbe(pick, family),
        kept: undefined as SourceFindings | undefined,
        isBlind: false,
      }));
      const events: HealthEvent[] = [];
      const others: HealthEvent[] = [];
      const [ledger, otherLedger] = [new FaultLedger(10), new FaultLedger(10)];
      const [shared, separate] = [assembler(events, ledger), assembler(others, otherLedger)];
      let shown: Snapshot | undefined;
      const page = exposition(() => shown);
      let held = podResources([]);
      let checkpoint: readonly CheckpointEntry[] = [];
      const rows = new StepCache<DeviceView>();
      const offers = offersOf(() => shown);
      for (let turn = 0; turn < 150; turn += 1) {
        const nowMs = (turn + 1) * TURN_MS;
        for (const part of parts) {
          // Now and then a family does not answer, or is not asked.
          const kind = pick(6);
          if (kind <= 1) part.isBlind ||= kind === 0;
          else [part.kept, part.isBlind] = [{ told: part.probe.collect(), readAtMs: nowMs }, false];
        }
        if (pick(4) === 0) {
          const some = held.allocations.filter(() => pick(3) > 0);
          const all = new Map([...some, ...allocations(pick)].map((one) => [allocationKey(one), one]));
          held = podResources(carriedAllocations(held.allocations, [...all.values()]), { answeredAtMs: nowMs });
        } else if (pick(3) === 0) held = structuredClone(held);
        if (pick(3) === 0) checkpoint = entries(held.allocations, pick);
        const inputs = (of: <T>(told: T) => T): Inputs => ({
          families: parts.map(({ family, kept, isBlind }) => ({
            state: familyState(family),
            latest: kept && lookAt(of(kept.told), kept.readAtMs),
            isBlind,
          })),
          podResources: of(held),
          checkpoint: of(checkpoint),
        });
        const now = { nowMs, monotonicMs: nowMs };
        const one = shared.assemble(
          inputs((told) => told),
          now,
        );
        const other = separate.assemble(inputs(structuredClone), now);
        if (!isDeepStrictEqual(one, other)) expect(one, `turn ${turn}`).toStrictEqual(other);
        if (!isDeepStrictEqual(events, others)) expect(events, `turn ${turn}`).toStrictEqual(others);
        if (!isDeepStrictEqual(ledger.saved, otherLedger.saved)) expect(ledger.saved, `turn ${turn}`).toStrictEqual(otherLedger.saved);
        shown = one;
        const board = { nowMs, shownOf };
        expect(boardOf(one, { ...board, kept: rows }), `turn ${turn}`).toStrictEqual(boardOf(other, board));
        expect(kubeletDevices(offers.current()), `turn ${turn}`).toStrictEqual(kubeletDevices(offersOf(() => other).current()));
        expect(await page.devices(), `turn ${turn}`).toBe(await exposition(() => other).devices());
      }
      expect(events.length).toBeGreaterThan(10);
    },
  );
});

interface SourceFindings {
  readonly told: Collection;
  readonly readAtMs: number;
}
