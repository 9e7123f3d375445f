import type { Device } from '../../src/model/device.ts';
import type { HeldRecord } from '../../src/model/device-record.ts';
import type { Reading } from '../../src/model/metric.ts';
import { defaultValues } from '../../src/model/options.ts';
import { Readings } from '../../src/model/readings.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import type { ContainerUsage, ContainerWaiting } from '../../src/model/usage.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { metrics } from '../../src/probes/nvidia/metrics.ts';
import { stallOptions } from '../../src/waiting/options.ts';
import { type WaitingSettings, WaitingTracker } from '../../src/waiting/tracker.ts';
import type { DeviceValues, HistoryDevice, HistoryTruth, StallHistory } from './history.ts';

/** A time in which the detector said a word of a container. */
export interface Told extends Pick<HistoryTruth, 'state' | 'pod' | 'container' | 'fromSeconds' | 'toSeconds'> {}

export interface Replayed {
  readonly told: readonly Told[];
  /** The answers of the last read. */
  readonly last: readonly ContainerWaiting[];
  /** Each estimate of a period, with its time. */
  readonly steps: readonly { readonly atSeconds: number; readonly stepSeconds: number }[];
}

const WALL_MS = Date.parse('2026-01-01T00:00:00Z');
const NAMESPACE = 'team';

export const settings = (options: Partial<WaitingSettings['options']> = {}): WaitingSettings => ({
  options: { ...defaultValues(stallOptions), ...options },
  watched: new Map(
    [nvidia, infiniband].map(({ name, progress, activity }) => [name, { progress, traffic: activity?.traffic?.metrics }] as const),
  ),
});

/** Lets the agent's own code read a history, as readings of real families. */
export function replay(history: StallHistory, using: WaitingSettings = settings()): Replayed {
  let tracker = new WaitingTracker(using);
  const restarts = [...(history.restarts ?? [])];
  const sums = new Map<string, number>();
  const records = new Map<string, HeldRecord>();
  const told: { -readonly [K in keyof Told]: Told[K] }[] = [];
  const steps: { atSeconds: number; stepSeconds: number }[] = [];
  let last: readonly ContainerWaiting[] = [];
  let before = 0;
  for (const { atSeconds, devices } of history.reads) {
    const restart = restarts[0];
    if (restart !== undefined && atSeconds >= restart.startedAtSeconds) {
      restarts.shift();
      tracker = new WaitingTracker(using, tracker.state());
    }
    for (const [id, facts] of Object.entries(history.devices)) {
      const values = devices[id];
      const known = records.get(keyOf(id, facts));
      if (values === undefined && known !== undefined) records.set(known.key, { ...known, isUnread: true });
      if (values !== undefined) {
        const record = recordOf(id, facts, readingsOf(id, facts, values, atSeconds - before, sums), atSeconds);
        const run = history.runs?.findLast(({ fromSeconds }) => atSeconds >= fromSeconds);
        records.set(record.key, { ...record, ...(run && { processes: [{ pid: 1, name: 'python3', containerId: run.containerId }] }) });
      }
    }
    before = atSeconds;
    last =
      tracker.step({
        devices: [...records.values()],
        usage: { containers: accountsOf(history, atSeconds), devices: [] },
        nowMs: WALL_MS + atSeconds * 1_000,
        monotonicMs: atSeconds * 1_000,
      }) ?? [];
    for (const { pod, container, state, stepSeconds } of last) {
      if (stepSeconds !== undefined && stepSeconds !== steps.at(-1)?.stepSeconds) steps.push({ atSeconds, stepSeconds });
      const words = state === 'stalled' ? (['BusyWaiting', 'Stalled'] as const) : state === 'waiting' ? (['BusyWaiting'] as const) : [];
      for (const word of words) {
        const open = told.findLast((one) => one.state === word && one.pod === pod && one.container === container);
        if (open !== undefined && atSeconds - open.toSeconds <= history.everySeconds * 1.5) open.toSeconds = atSeconds;
        else told.push({ state: word, pod, container, fromSeconds: atSeconds, toSeconds: atSeconds });
      }
    }
  }
  return { told, last, steps };
}

const familyOf = ({ kind }: HistoryDevice): string => (kind === 'nic' ? infiniband.name : nvidia.name);
const keyOf = (id: string, facts: HistoryDevice): string => `${familyOf(facts)}/${id}`;

function accountsOf({ containers, devices }: StallHistory, atSeconds: number): ContainerUsage[] {
  return containers
    .filter(({ fromSeconds = 0, toSeconds = Number.POSITIVE_INFINITY }) => atSeconds >= fromSeconds && atSeconds <= toSeconds)
    .flatMap(({ pod, container, devices: held, fromSeconds = 0 }) =>
      held.map((id) => ({
        namespace: NAMESPACE,
        pod,
        container,
        resource: 'example.com/device',
        device: keyOf(id, devices[id] as HistoryDevice),
        sinceMs: WALL_MS + fromSeconds * 1_000,
        allocatedSeconds: 0,
        shareSeconds: 0,
        busySeconds: {},
        idleSeconds: 0,
        unobservedSeconds: 0,
      })),
    );
}

/** Counters grow by the means, so that the detector meets them as the hardware gives them. */
function readingsOf(id: string, facts: HistoryDevice, values: DeviceValues, overSeconds: number, sums: Map<string, number>): Reading[] {
  const readings: Reading[] = [];
  const add = (metric: string, value: number | undefined, labels?: Reading['labels']): void => {
    if (value !== undefined) readings.push({ metric, value, ...(labels === undefined ? {} : { labels }) });
  };
  const grow = (metric: string, rate: number | undefined, labels?: Reading['labels']): void => {
    if (rate === undefined) return;
    const name = `${id} ${metric} ${labels?.port ?? ''}`;
    sums.set(name, (sums.get(name) ?? 1e12) + rate * overSeconds);
    add(metric, sums.get(name), labels);
  };
  const both = (rate: number | undefined, port: string): void => {
    for (const { name } of [shared.receivedBytes, shared.transmittedBytes]) grow(name, rate === undefined ? undefined : rate / 2, { port });
  };
  add(shared.utilization.name, values.utilization, { engine: 'gpu' });
  for (const unit of ['tensor', 'fp16', 'fp32', 'fp64', 'integer'] as const) add(metrics.activity.name, values[unit], { unit });
  for (const engine of ['encoder', 'decoder'] as const) add(shared.utilization.name, values[engine], { engine });
  add(metrics.memoryBandwidth.name, values.dram);
  add(shared.memoryUsed.name, values.memoryBytes);
  grow(shared.energy.name, values.watts);
  add(shared.powerLimit.name, facts.limitWatts, { limit: 'enforced' });
  both(values.nvlinkBytesPerSecond, 'nvlink0');
  both(values.pcieBytesPerSecond, 'pcie');
  both(values.nicBytesPerSecond, '1');
  return readings;
}

function recordOf(id: string, facts: HistoryDevice, readings: readonly Reading[], atSeconds: number): HeldRecord {
  const device: Device = { family: familyOf(facts), id, kind: facts.kind, aliases: [], ...(facts.model && { model: facts.model }) };
  const read = {
    readings: Readings.of(readings),
    findings: [],
    startedMs: atSeconds * 1_000 - 50,
    readAtMs: WALL_MS + atSeconds * 1_000,
    monotonicMs: atSeconds * 1_000,
  };
  return {
    key: keyOf(id, facts),
    device,
    read,
    isUnread: false,
    holders: [],
    current: read,
    readings: read.readings,
    processes: [],
    readAtMs: read.readAtMs,
    stale: false,
    awaitedSinceMs: undefined,
  };
}
