import { describe, expect, it } from 'vitest';
import { Accounts, type AccountsSettings } from '../../src/accounting/accounts.ts';
import type { Reading } from '../../src/model/metric.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, holds, report, settings } from './small-node.ts';

const T0 = Date.parse('2030-01-01T00:00:00Z');
const [computes] = [settings.activity.get('gpu')];
const withSensor: AccountsSettings = {
  ...settings,
  activity: new Map([['gpu', { ...(computes as NonNullable<typeof computes>), powerSensors: ['board_average', 'board'] }]]),
};

const power = (watts: number, sensor = 'board'): Reading => ({ metric: shared.power.name, labels: { sensor }, value: watts });

/** Accounts after reads at these seconds, each with its readings; the GPU is busy. */
function accountsAfter(reads: readonly (readonly [number, readonly Reading[]])[], holders: readonly string[]): readonly ContainerUsage[] {
  const agent = assembler({ accounts: new Accounts(withSensor) });
  let last: readonly ContainerUsage[] = [];
  for (const [second, readings] of reads) {
    const now = second * 1_000;
    const [busy, memory] = gpuReadings(0.9, 0);
    const one = report(gpu('g0'), [busy as Reading, memory as Reading, ...readings]);
    const { usage } = agent.assemble(
      {
        families: [{ state: familyState('gpu'), latest: lookAt(listed([one]), T0 + now + 5, now + 5, now) }],
        podResources: podResources(
          holders.map((pod, index) => holds(`g0::${index}`, pod)),
          { answeredAtMs: T0 + now },
        ),
        checkpoint: [],
      },
      { nowMs: T0 + now + 6, monotonicMs: now + 6 },
    );
    last = usage?.containers ?? [];
  }
  return last;
}

const every10s = (readings: (second: number) => readonly Reading[], until = 100): readonly (readonly [number, readonly Reading[]])[] =>
  Array.from({ length: until / 10 + 1 }, (_, at) => [at * 10, readings(at * 10)] as const);

describe('the energy of a device whose driver counts none', () => {
  it('is an estimate: its power, times the time between two reads', () => {
    const [account] = accountsAfter(
      every10s(() => [power(300)]),
      ['train'],
    );
    expect(account?.energyJoules).toBeUndefined();
    expect(account?.energyEstimatedJoules).toBeCloseTo(300 * 100, -1);
  });

  it('takes the mean of the power at both reads, of the best sensor only', () => {
    const [account] = accountsAfter(
      every10s((second) => [power(1_000), power(second * 4, 'board_average')]),
      ['train'],
    );
    expect(account?.energyEstimatedJoules).toBeCloseTo(200 * 100, -1);
  });

  it('is divided among those who share the device', () => {
    const accounts = accountsAfter(
      every10s(() => [power(300)]),
      ['a', 'b'],
    );
    const sum = accounts.reduce((all, { energyEstimatedJoules = 0 }) => all + energyEstimatedJoules, 0);
    expect(accounts.length).toBe(2);
    expect(sum).toBeCloseTo(300 * 100, -1);
  });

  it('is unknown for a time without power, and for one in which the device was not read', () => {
    const gone = accountsAfter(
      every10s((second) => (second === 50 ? [] : [power(300)])),
      ['train'],
    );
    expect(gone[0]?.energyEstimatedJoules).toBeCloseTo(300 * 80, -1);
    const late = accountsAfter(
      [0, 10, 20, 200, 210].map((second) => [second, [power(300)]] as const),
      ['train'],
    );
    expect(late[0]?.energyEstimatedJoules).toBeCloseTo(300 * 30, -1);
  });

  it('is absent where there is no sensor that the family names', () => {
    const [account] = accountsAfter(
      every10s(() => [power(300, 'memory')]),
      ['train'],
    );
    expect(account?.energyEstimatedJoules).toBeUndefined();
  });

  it('is not estimated once a counter was seen, because the counter tells the gap too', () => {
    const counter = (joules: number): Reading => ({ metric: shared.energy.name, value: joules });
    const [account] = accountsAfter(
      every10s((second) => (second === 50 ? [power(300)] : [power(300), counter(second * 300)])),
      ['train'],
    );
    expect(account?.energyEstimatedJoules).toBeUndefined();
    expect(account?.energyJoules).toBeCloseTo(300 * 90, -1);
  });
});
