import { describe, expect, it } from 'vitest';
import { listedFaults } from '../../src/incidents/by-device.ts';
import type { PresentHolder } from '../../src/incidents/fault-holders.ts';
import { FaultLedger } from '../../src/incidents/fault-ledger.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { DeviceRecord } from '../../src/model/device-record.ts';
import type { Fault } from '../../src/model/fault.ts';
import { HardwareKeys } from '../../src/model/hardware.ts';
import { Readings } from '../../src/model/readings.ts';

const GPU: Device = { family: 'acme', id: 'gpu0', kind: 'gpu', aliases: [] };
const KEYS = new HardwareKeys([GPU]);
const holder = (pod: string): PresentHolder => ({
  holder: { namespace: 'proof', pod, container: 'main', resource: 'acme.com/gpu', deviceId: 'gpu0' },
  uid: `uid-${pod}`,
});

let seq = 0;
const fault = (timeMs: number, pid: number | undefined, more: Partial<Fault> = {}): Fault => {
  seq += 1;
  const place = { seq, usec: timeMs * 1_000 };
  return {
    ...{ witness: 'log', epoch: '', first: place, last: place, type: 'Trap', code: '43', reason: 'Application', severity: 'info' },
    ...{ remedy: 'restart-workload', message: 'Trap 43', timeMs, lastMs: timeMs, count: 1, lines: [`channel of ${pid}`] },
    ...(pid === undefined ? {} : { process: { pid } }),
    counter: { metric: 'device_acme_traps_total', labels: { trap: '43' } },
    ...more,
  };
};

/** An agent that looks at one device. */
class Looks {
  ledger: FaultLedger;
  readonly #keep: number;
  constructor(keep = 100) {
    this.#keep = keep;
    this.ledger = new FaultLedger(keep);
  }

  look(
    nowMs: number,
    pods: readonly string[],
    faults: readonly Fault[] = [],
    processes: readonly DeviceProcess[] = [],
    answeredAtMs = nowMs,
  ) {
    const read = { readings: Readings.NONE, findings: [], processes, startedMs: nowMs, readAtMs: nowMs, monotonicMs: nowMs };
    const record: DeviceRecord = { key: 'acme/gpu0', device: GPU, isUnread: false, read, faults };
    const input = { devices: [record], holdersOf: () => pods.map(holder), answeredAtMs, podOf: () => undefined };
    return this.ledger.step({ ...input, nowMs, monotonicMs: nowMs }, KEYS);
  }

  restart(): void {
    this.ledger = new FaultLedger(this.#keep, JSON.parse(JSON.stringify(this.ledger.saved)), JSON.parse(JSON.stringify(this.ledger.kept)));
  }

  counts(pod: string): readonly unknown[] {
    return this.ledger.ownReadings(KEYS.of(GPU), `proof/${pod}/main`, `uid-${pod}`).map(({ value }) => value);
  }

  get total(): readonly unknown[] {
    return [...this.ledger.readingsOf(KEYS.of(GPU))].map(({ value }) => value);
  }
}

describe('the ledger of faults', () => {
  it('has nothing to save while the holders stay, also where no UID is known and another holder ended before', () => {
    const ledger = new FaultLedger(10);
    const record: DeviceRecord = { key: 'acme/gpu0', device: GPU, isUnread: false };
    const look = (nowMs: number, ...pods: readonly string[]): boolean => {
      const holdersOf = (): PresentHolder[] => pods.map((pod) => ({ ...holder(pod), uid: undefined }));
      ledger.step({ devices: [record], holdersOf, answeredAtMs: nowMs, podOf: () => undefined, nowMs, monotonicMs: nowMs }, KEYS);
      return ledger.takeNews();
    };
    expect([look(0, 'a'), look(10_000, 'a'), look(20_000, 'a')]).toEqual([true, false, false]);
    expect([look(30_000, 'b'), look(40_000, 'b'), look(50_000, 'b'), look(60_000)]).toEqual([true, false, false, true]);
  });

  it('counts the first fault of a pod, and tells each fault with its pod, also while a condition of it holds', () => {
    const looks = new Looks();
    looks.look(0, ['p1']);
    const told = [5, 6, 7, 8, 9].flatMap((at) => looks.look(at * 1_000 + 100, ['p1'], [fault(at * 1_000, 800 + at)]));
    looks.look(20_000, []);
    looks.look(21_000, ['p2']);
    told.push(...looks.look(30_100, ['p2'], [fault(30_000, 857)]));
    expect(told.map(({ transition, holders, blame }) => [transition, holders[0]?.pod, blame])).toEqual([
      ...Array(5).fill(['fault', 'p1', 'only']),
      ['fault', 'p2', 'only'],
    ]);
    expect([looks.counts('p1'), looks.counts('p2'), looks.total]).toEqual([[5], [1], [6]]);
    expect(listedFaults(looks.ledger.kept, 'proof').map(({ holders }) => holders)).toEqual([
      ['proof/p2/main'],
      ...Array(5).fill(['proof/p1/main']),
    ]);
    expect(listedFaults(looks.ledger.kept, 'other')).toEqual([]);
  });

  it('names the pod of a process that earlier reads showed, on a device that two pods hold', () => {
    const looks = new Looks();
    looks.look(0, ['a', 'b']);
    looks.look(1_000, ['a', 'b'], [], [{ pid: 7, name: 'job', podUid: 'uid-a' }]);
    const told = looks.look(9_000, ['a', 'b'], [fault(8_000, 7), fault(8_500, 8), fault(8_600, undefined)]);
    expect(told.map(({ blame, holders }) => [blame, holders.map(({ pod }) => pod).join()])).toEqual([
      ['process', 'a'],
      ['one-of', 'a,b'],
      ['one-of', 'a,b'],
    ]);
    expect(told[1]?.message).toContain('of one of the pods proof/a, proof/b');
    expect([looks.counts('a'), looks.counts('b'), looks.total]).toEqual([[1], [], [3]]);
  });

  it('names all holders of a fault whose process may be another one', () => {
    const looks = new Looks();
    looks.look(0, ['a', 'b'], [], [{ pid: 7, name: 'job', podUid: 'uid-a' }]);
    expect(looks.look(9_000, ['a', 'b'], [fault(8_000, 7, { isAnyProcess: true })])[0]?.blame).toBe('one-of');
  });

  it('waits for an answer of the kubelet that is not older than the fault, and names both when the holder changed between two answers', () => {
    const looks = new Looks();
    looks.look(0, ['p1']);
    const late = [fault(5_000, 1)];
    expect(looks.look(5_100, ['p1'], late, [], 1_000)).toEqual([]);
    expect(looks.ledger.isWaiting).toBe(true);
    expect(looks.look(6_000, ['p2'], late)[0]).toMatchObject({ blame: 'one-of', holders: [{ pod: 'p1' }, { pod: 'p2' }] });
  });

  it('counts nothing twice over restarts, and goes on where it was', () => {
    const looks = new Looks();
    looks.look(0, ['p1']);
    const all = [fault(1_000, 1), fault(2_000, 2)];
    looks.look(3_000, ['p1'], all);
    looks.restart();
    expect(looks.look(4_000, ['p1'], all)).toEqual([]);
    all.push(fault(4_500, 3));
    expect(looks.look(5_000, ['p1'], all)).toHaveLength(1);
    expect([looks.counts('p1'), looks.total, looks.ledger.kept.length]).toEqual([[3], [3], 3]);
  });

  it('tells a flood at its powers of ten, with the exact number at the end', () => {
    const looks = new Looks();
    looks.look(0, ['p1']);
    const told: { readonly count?: number }[] = [];
    for (let at = 1; at <= 800; at += 1)
      told.push(...looks.look(at * 1_000, ['p1'], [fault(at * 1_000 - 500, 9, { count: 1_000, isRepeat: true })]));
    told.push(...looks.look(900_000, ['p1']));
    expect(told.map(({ count }) => count)).toEqual([1_000, 10_000, 100_000, 800_000]);
    expect(looks.total).toEqual([800_000]);
    expect(looks.ledger.kept).toHaveLength(1);
  });

  it('tells the first fault of a container that restarted in its pod, however often the run before it had the same one', () => {
    const looks = new Looks();
    const processes = ['a', 'b'].map(
      (run, n): DeviceProcess => ({ pid: 9 + n, name: 'job', podUid: 'uid-p1', containerId: run.repeat(64) }),
    );
    looks.look(0, ['p1'], [], processes.slice(0, 1));
    const flood = (at: number, pid: number) => fault(at * 1_000 - 500, pid, { count: 5, isRepeat: true });
    const told = [1, 2, 3].flatMap((at) => looks.look(at * 1_000, ['p1'], [flood(at, 9)]));
    looks.look(10_000, ['p1'], [], processes.slice(1));
    looks.restart();
    looks.look(11_000, ['p1'], [], processes.slice(1));
    told.push(...looks.look(12_000, ['p1'], [flood(12, 10)]), ...looks.look(13_000, ['p1'], [flood(13, 10)]));
    expect(told.map(({ count, blame }) => [count, blame])).toEqual([
      [5, 'process'],
      [5, 'process'],
    ]);
    expect(looks.ledger.kept.map(({ count, process }) => [count, process?.containerId?.[0]])).toEqual([
      [15, 'a'],
      [10, 'b'],
    ]);
    // Both runs are one container to Kubernetes.
    expect(looks.counts('p1')).toEqual([25]);
  });

  it('keeps a bounded list', () => {
    const looks = new Looks(10);
    looks.look(0, ['p1']);
    for (let at = 1; at <= 50; at += 1) looks.look(at * 1_000, ['p1'], [fault(at * 1_000 - 500, at)]);
    expect(looks.ledger.kept).toHaveLength(10);
    expect(looks.total).toEqual([50]);
  });
});
