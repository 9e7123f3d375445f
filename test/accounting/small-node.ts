import { Accounts, type AccountsSettings } from '../../src/accounting/accounts.ts';
import type { AccountsState } from '../../src/accounting/saved-accounts.ts';
import { Assembler, type UsageDependencies } from '../../src/agent/assemble.ts';
import type { RestoredDevice } from '../../src/agent/known-devices.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess, DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { DelegationRules } from '../../src/model/device-use.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { MetricSpec, Reading } from '../../src/model/metric.ts';
import { measured, shared } from '../../src/model/shared-metrics.ts';
import { allocation, device } from '../support/snapshots.ts';

/** Two families as a node has them: one that computes, and one that moves bytes. */
export const metrics: readonly MetricSpec[] = [
  measured(shared.utilization, 'a'),
  measured(shared.memoryUsed, 'b'),
  measured(shared.energy, 'c'),
  measured(shared.receivedBytes, 'd'),
  measured(shared.transmittedBytes, 'e'),
];
const specs = new Map(metrics.map((spec) => [spec.name, spec]));

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const activities = new Map([['gpu', { utilization: { above: 0.05 }, isForHoldersOnly: true }]]);

export const settings: AccountsSettings = {
  staleAfterMs: MINUTE,
  missingRetentionMs: DAY,
  zeroForMs: MINUTE,
  lingerMs: 3 * MINUTE,
  absentForMs: MINUTE / 2,
  activity: new Map([
    ['gpu', { spec: { utilization: { above: 0.05 }, isForHoldersOnly: true } }],
    [
      'hca',
      {
        spec: {
          traffic: { metrics: [shared.receivedBytes.name, shared.transmittedBytes.name], above: 10_000 },
          isForHoldersOnly: false,
        },
      },
    ],
  ]),
  isCounter: (metric) => specs.get(metric)?.type === 'counter',
};

/** A GPU that may be shared by two, and an HCA. */
export const gpu = (id: string, more: Partial<Device> = {}): Device =>
  device({ family: 'gpu', id, aliases: [`${id}::0`, `${id}::1`, `${id}::2`], ...more });
export const hca = (id: string, more: Partial<Device> = {}): Device => device({ family: 'hca', id, ...more });

export const gpuReadings = (busy: number, joules: number, bytes = 0): readonly Reading[] => [
  { metric: shared.utilization.name, labels: { engine: 'gpu' }, value: busy },
  { metric: shared.memoryUsed.name, value: bytes },
  { metric: shared.energy.name, value: joules },
];
export const hcaReadings = (received: number | bigint, transmitted: number | bigint): readonly Reading[] => [
  { metric: shared.receivedBytes.name, labels: { port: '1' }, value: received },
  { metric: shared.transmittedBytes.name, labels: { port: '1' }, value: transmitted },
];

export const report = (one: Device, readings: readonly Reading[], processes: readonly DeviceProcess[] = []): DeviceReport => ({
  device: one,
  read: { readings, findings: [], processes },
});

export const holds = (deviceId: string, pod: string, container = 'main'): Allocation =>
  allocation({ deviceId, pod, container, resource: deviceId.startsWith('h') ? 'example.com/hca' : 'example.com/gpu' });

/** What an agent leaves on the disk: text. */
export function savedText({ accounts }: UsageDependencies): string {
  return JSON.stringify(accounts.state(), (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

export interface Start {
  readonly text?: string;
  readonly gapMs?: number;
  readonly savedAtMs?: number;
  readonly monotonicMs?: number;
  readonly isSameBoot?: boolean;
}

/** The memory of an agent, as it starts with what an earlier run left. */
export function usageParts({ text, gapMs = 0, savedAtMs = 0, monotonicMs = 0, isSameBoot = true }: Start = {}): UsageDependencies {
  if (text === undefined) return { accounts: new Accounts(settings) };
  const state = JSON.parse(text) as AccountsState;
  return { accounts: new Accounts(settings, { state, savedAtMs, atMs: isSameBoot ? monotonicMs - gapMs : undefined }) };
}

const HEALTHY: Verdict = { state: 'healthy', sinceMs: 1, conditions: [] };
const UNHEALTHY: Verdict = { state: 'unhealthy', sinceMs: 1, conditions: [] };

/** Joins and accounts as the agent does. `isUnhealthy` gives the verdict. With `delegation`, pods can use GPUs that they do not hold. */
export function assembler(
  usage: UsageDependencies,
  known: readonly RestoredDevice[] = [],
  isUnhealthy: (key: string) => boolean = () => false,
  delegation?: DelegationRules,
): Assembler {
  return new Assembler(
    {
      rules: { pools: [], families: new Map() },
      specs,
      staleAfterMs: settings.staleAfterMs,
      missingRetentionMs: settings.missingRetentionMs,
      ...(delegation && { use: { activities, idle: {}, limits: { 'allowed-processes': [], 'dirty-mib': 0 }, delegation } }),
    },
    (devices) => new Map(devices.map(({ key }) => [key, isUnhealthy(key) ? UNHEALTHY : HEALTHY])),
    known,
    usage,
  );
}
