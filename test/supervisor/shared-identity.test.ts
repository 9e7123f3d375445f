import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { Finding, HealthState } from '../../src/model/health.ts';
import { withSharedIdentities } from '../../src/supervisor/probe-look.ts';
import { spec } from '../health/one-device.ts';

const START = 1_900_000_000_000;
const { policy } = createPolicy({
  specs: { toy: [spec('Fault'), spec('Errors', { class: 'rate', threshold: { growth: 10, windowMs: 3_600_000 } })] },
});
const fault = (status: boolean): Finding => ({ type: 'Fault', status, reason: 'Because', message: 'it is broken' });
const errors = (count: number): Finding => ({ type: 'Errors', count, reason: 'CounterGrows', message: `${count} errors` });
const report = (id: string, identity: string | null, ...findings: readonly Finding[]): DeviceReport => ({
  device: { family: 'toy', id, kind: 'card', aliases: [], identity },
  read: { readings: [], findings },
});
const listed = (...reports: readonly DeviceReport[]): Collection => ({ reports, problems: [], listing: 'complete' });

/** Judges collections as the agent does, and gives the states of the last one by name. */
function life() {
  const engine = createHealthEngine({ policy });
  let seconds = 0;
  return (...reports: readonly DeviceReport[]): Readonly<Record<string, HealthState>> => {
    seconds += 10;
    const atMs = START + seconds * 1_000;
    const devices = withSharedIdentities(listed(...reports)).reports.map(({ device, read }) => ({
      key: `toy/${device.id}`,
      device,
      holders: [],
      read: { findings: read?.findings ?? [], readAtMs: atMs },
    }));
    const { verdicts } = engine.judge({ devices }, atMs);
    return Object.fromEntries([...verdicts].map(([key, { state }]) => [key.slice('toy/'.length), state]));
  };
}

describe('devices that tell one identity', () => {
  it('are a problem with their names', () => {
    expect(
      withSharedIdentities(listed(report('b', 'X'), report('a', 'X'), report('c', 'Y'), report('d', null), report('e', null))).problems,
    ).toEqual([{ code: 'same-identity', message: 'a and b report the same identity: X' }]);
  });

  it('share what other sources tell of one of them', () => {
    const logged = { ...report('a', 'X'), outOfBand: { readings: [], findings: [fault(true)] } };
    const [, other] = withSharedIdentities(listed(logged, report('b', 'X'))).reports;
    expect(other?.outOfBand?.findings).toEqual([{ ...fault(true), instance: 'a' }]);
  });

  it.each([
    ['first', true],
    ['last', false],
  ])('have the worse verdict, when the sick one is %s', (_, isFirst) => {
    const judge = life();
    const both = (isSick: boolean) => {
      const [a, b] = [report('a', 'X', fault(isFirst && isSick)), report('b', 'X', fault(!isFirst && isSick))] as const;
      return judge(a, b, report('c', 'Y', fault(false)));
    };
    expect(both(false)).toEqual({ a: 'healthy', b: 'healthy', c: 'healthy' });
    expect(both(true)).toEqual({ a: 'unhealthy', b: 'unhealthy', c: 'healthy' });
    expect(both(false)).toEqual({ a: 'healthy', b: 'healthy', c: 'healthy' });
  });

  it('are not sound because the sick one was not read', () => {
    const judge = life();
    const sick = report('a', 'X', fault(true));
    expect(judge(sick, report('b', 'X', fault(false)))).toEqual({ a: 'unhealthy', b: 'unhealthy' });
    expect(judge({ device: sick.device }, report('b', 'X', fault(false)))).toMatchObject({ b: 'unhealthy' });
  });

  it('are not judged by the difference of their counters, but by the growth of each', () => {
    const judge = life();
    expect(judge(report('a', 'X', errors(5)), report('b', 'X', errors(5_000)))).toEqual({ a: 'healthy', b: 'healthy' });
    expect(judge(report('b', 'X', errors(5_000)), report('a', 'X', errors(5)))).toEqual({ a: 'healthy', b: 'healthy' });
    expect(judge(report('a', 'X', errors(5)), report('b', 'X', errors(5_020)))).toEqual({ a: 'unhealthy', b: 'unhealthy' });
  });

  it('keep what was remembered when the other one comes', () => {
    const judge = life();
    judge(report('a', 'X', errors(5)));
    expect(judge(report('a', 'X', errors(50)))).toEqual({ a: 'unhealthy' });
    expect(judge(report('a', 'X'), report('b', 'X'))).toEqual({ a: 'unhealthy', b: 'unhealthy' });
    const other = life();
    other(report('a', 'X', errors(5)));
    expect(other(report('a', 'X', errors(5)), report('b', 'X', errors(5_000))), 'its counters are its own').toEqual({
      a: 'healthy',
      b: 'healthy',
    });
  });
});
