import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { usageOptions } from '../../src/accounting/options.ts';
import { StateLease } from '../../src/agent/state.ts';
import { UsageLedger } from '../../src/agent/usage-ledger.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createLogger } from '../../src/log/logger.ts';
import { hours, millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { containerEntry, HOUR, HOUR_MS, START_MS } from '../accounting/sample.ts';

let directory: string;
let nowMs: number;
let current: Snapshot | undefined;
let lines: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'usage-ledger-'));
  nowMs = START_MS + 60_000;
  current = undefined;
  lines = [];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const ledgerAt = (file: string, lease?: StateLease): UsageLedger =>
  new UsageLedger(
    { usage: defaultValues(usageOptions), state: { file } },
    { snapshot: () => current },
    createLogger({ level: 'info', format: 'json' }, { write: (line) => lines.push(line) }),
    { ...systemClock, now: () => nowMs },
    lease,
  );

/** The account after so many hours, and the snapshot of that time. */
function account(atHours: number, part: Partial<ContainerUsage> = {}): ContainerUsage {
  const { atMs: _, ...values } = containerEntry(atHours, part);
  return values;
}
function take(ledger: UsageLedger, atHours: number, containers: readonly ContainerUsage[]): void {
  nowMs = START_MS + atHours * HOUR_MS;
  current = { takenAtMs: nowMs, devices: [], usage: { containers, devices: [] } } as unknown as Snapshot;
  ledger.update(current);
}
const written = (): readonly Record<string, unknown>[] =>
  readdirSync(join(directory, 'usage'))
    .flatMap((file) =>
      readFileSync(join(directory, 'usage', file), 'utf8')
        .split('\n')
        .slice(1),
    )
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
const state = (): string => join(directory, 'health.json');
const day = { since: hours(24), by: 'namespace' } as const;

describe('UsageLedger', () => {
  it('writes nothing while a newer agent has the disk, and then the end of each account that outputs still show', async () => {
    const lease = new StateLease();
    const ledger = ledgerAt(state(), lease);
    lease.give();
    const ended = account(0.3, { endedAtMs: START_MS + 0.3 * HOUR_MS });
    take(ledger, 0.2, [account(0.2)]);
    take(ledger, 0.4, [ended]);
    await ledger.written();
    expect(readdirSync(directory)).toEqual([]);
    lease.take();
    take(ledger, 0.5, [ended]);
    await ledger.written();
    expect(written().map(({ endedAtMs }) => endedAtMs)).toEqual([START_MS + 0.3 * HOUR_MS]);
  });

  it('writes each running account once an hour, and at the end of the agent', async () => {
    const ledger = ledgerAt(state());
    for (const at of [0.2, 0.6, 1.01, 1.5, 2.1]) take(ledger, at, [account(at)]);
    take(ledger, 2.5, [account(2.5)]);
    await ledger.close();
    expect(written().map(({ atMs }) => (Number(atMs) - START_MS) / HOUR_MS)).toEqual([1.01, 2.1, 2.5]);
  });

  it('writes the end of an account once, with the time of the end', async () => {
    const ledger = ledgerAt(state());
    const ended = account(0.3, { endedAtMs: START_MS + 0.3 * HOUR_MS });
    take(ledger, 0.2, [account(0.2)]);
    take(ledger, 0.31, [ended]);
    take(ledger, 0.32, [ended]);
    take(ledger, 0.4, []);
    await ledger.close();
    expect(written()).toMatchObject([{ atMs: START_MS + 0.3 * HOUR_MS, endedAtMs: START_MS + 0.3 * HOUR_MS }]);
  });

  it('reports what an earlier agent wrote together with what runs now', async () => {
    const first = ledgerAt(state());
    take(first, 2, [account(2, { namespace: 'earlier', idleSeconds: HOUR })]);
    await first.close();
    const ledger = ledgerAt(state());
    take(ledger, 3.5, [account(3.5)]);
    const { rows, ledger: read } = await ledger.report(day);
    expect(rows.map(({ name, shareSeconds, idleShareSeconds }) => [name, shareSeconds / HOUR, idleShareSeconds / HOUR])).toEqual([
      ['earlier', 2, 1],
      ['ml', 3.5, 0],
    ]);
    expect(read).toEqual({ damagedLines: 0, newerFiles: 0 });
    await ledger.close();
  });

  it('answers several questions at once', async () => {
    const ledger = ledgerAt(state());
    take(ledger, 3, [account(3)]);
    const [one, other] = await Promise.all([ledger.report(day), ledger.report({ since: millis(HOUR_MS), by: 'pod' })]);
    expect(one.rows).toMatchObject([{ name: 'ml', shareSeconds: 3 * HOUR }]);
    expect(other.rows).toMatchObject([{ name: 'ml/train-0', shareSeconds: HOUR }]);
    await ledger.close();
  });

  it('tells of a disk that fails once, and writes what waited when it works again', async () => {
    const blocked = join(directory, 'usage');
    writeFileSync(blocked, '');
    const ledger = ledgerAt(state());
    for (const at of [0.5, 1.1, 2.1, 3.1]) take(ledger, at, [account(at)]);
    expect((await ledger.report(day)).total.shareSeconds / HOUR).toBeCloseTo(3.1);
    await ledger.close();
    expect(lines.filter((line) => line.includes('the ledger of usage cannot be written'))).toHaveLength(1);
    rmSync(blocked);
    await ledger.close();
    expect(lines.some((line) => line.includes('it is written again'))).toBe(true);
    expect(written()).toHaveLength(5);
  });

  it('reports what outputs show without a state file, and writes nothing', async () => {
    const ledger = ledgerAt('');
    take(ledger, 0.4, [account(0.4, { endedAtMs: START_MS + 0.4 * HOUR_MS })]);
    await ledger.close();
    expect((await ledger.report(day)).total.shareSeconds / HOUR).toBeCloseTo(0.4);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('skips a line that is broken or of another form, says so once, and reports the others', async () => {
    const ledger = ledgerAt(state());
    for (const at of [0.5, 1.1]) take(ledger, at, [account(at)]);
    await ledger.written();
    const [file = ''] = readdirSync(join(directory, 'usage'));
    appendFileSync(join(directory, 'usage', file), '{"namespace":"ml","po\n{"namespace":"ml","pod":"other"}\n');
    expect(ledger.damagedLines).toBeUndefined();
    for (let asked = 0; asked < 2; asked += 1) {
      const { total, ledger: read } = await ledger.report(day);
      expect([total.shareSeconds / HOUR, read.damagedLines]).toEqual([1.1, 2]);
    }
    expect(ledger.damagedLines).toBe(2);
    expect(lines.filter((line) => line.includes('damaged lines'))).toHaveLength(1);
  });

  it('takes 10,000 containers in an hour, and reports them', async () => {
    const ledger = ledgerAt(state());
    const many = (atHours: number): ContainerUsage[] =>
      Array.from({ length: 10_000 }, (_, at) => account(atHours, { pod: `pod-${at}`, idleSeconds: atHours * at * 0.1 }));
    take(ledger, 0.5, many(0.5));
    take(ledger, 1.1, many(1.1));
    await ledger.close();
    const { rows, total, leftOut } = await ledger.report({ since: hours(24), by: 'pod' });
    expect([rows.length, rows[0]?.name, total.containers, leftOut]).toEqual([10_000, 'ml/pod-9999', 10_000, 0]);
    expect(lines).toEqual([]);
  });
});
