import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LedgerEntry, ledgerDirectory, openLedger, toRecord } from '../../src/accounting/ledger.ts';
import { usageCsv, usageTable } from '../../src/cli/usage/usage.ts';
import { systemClock } from '../../src/host/clock.ts';
import { hours } from '../../src/model/duration.ts';
import { containerEntry, HOUR, HOUR_MS, START_MS, usageReport } from '../accounting/sample.ts';
import { withUsageTimes } from '../support/constants.ts';
import { serve } from '../support/serve.ts';
import { run } from './command-line.ts';

let folder: string;
let state: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-usage-'));
  state = join(folder, 'health.json');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const NO_AGENT = '--web.listen-address=127.0.0.1:1';
const usage = (...flags: readonly string[]) => run(['usage', NO_AGENT, `--state.file=${state}`, ...flags]);

/** A ledger whose account held a device for two of the last three hours, half of it idle. */
async function writeLedger(part: Partial<LedgerEntry> = {}): Promise<void> {
  const nowMs = Date.now();
  const entry = containerEntry(2, {
    atMs: nowMs - HOUR_MS,
    sinceMs: nowMs - 3 * HOUR_MS,
    idleSeconds: HOUR,
    energyJoules: 1_800_000,
    ...part,
  });
  const ledger = openLedger(ledgerDirectory(state) ?? '', { 'keep-days': 30, 'keep-mib': 1 }, systemClock);
  expect(await ledger.append([toRecord(entry)])).toBeUndefined();
}

describe('device-agent usage without an agent', () => {
  it('reads the ledger beside the state file', async () => {
    await writeLedger();
    const { status, stdout, stderr } = await usage();
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['1 of 2 device hours idle: 1 of them ml.'],
      [''],
      ['NAMESPACE', 'CONTAINERS', 'DEVICE HOURS', 'IDLE HOURS', 'IDLE', 'BUSIEST ENGINE', 'UNOBSERVED HOURS', 'ENERGY KWH'],
      ['ml', '1', '2.00', '1.00', '50%', '-', '0.00', '0.50'],
      ['TOTAL', '1', '2.00', '1.00', '50%', '-', '0.00', '0.50'],
    ]);
    expect(stderr).toContain('no agent answers; this is its ledger');
    expect(status).toBe(0);
  });

  it('prints JSON with stable names in base units', async () => {
    await writeLedger({ labels: { team: 'vision' } });
    const report = JSON.parse((await usage('-o', 'json', '--by=label:team', '--since=7d')).stdout);
    expect(report).toMatchObject({
      source: 'ledger',
      by: 'label:team',
      rows: [{ name: 'vision', shareSeconds: 2 * HOUR, energyJoules: 1_800_000 }],
    });
  });

  it('says so when there is no ledger', async () => {
    const { status, stdout, stderr } = await usage();
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain('no agent answers, and there is no ledger to read');
    mkdirSync(join(folder, 'usage'));
    expect((await usage()).status).toBe(0);
  });

  it.each([
    ['--since=yesterday', '--since must be a time such as 24h or 7d'],
    ['--by=node', '--by must be one of namespace, pod, device, resource or label:NAME'],
    ['--output=xml', 'xml'],
  ])('refuses %s in one sentence with a remedy', async (flag, sentence) => {
    const { status, stdout, stderr } = await usage(flag);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(sentence);
    expect(stderr).toContain('device-agent usage --help');
  });
});

describe('device-agent usage with an agent', () => {
  it('asks the agent, which knows what runs now; its ledger has that after its end', async () => {
    const agent = await serve(
      ['--refresh.interval=1s', '--sim.devices=nvidia=2', '--sim.pods=4', '--sim.pod-change=0s', `--state.file=${state}`],
      'demo',
      { env: withUsageTimes({ 'zero-for': 0 }) },
    );
    try {
      await agent.until('an account', (page) => /^container_device_allocated_seconds_total\{.*\} (?!0$)/m.test(page));
      const { status, stdout } = await run(['usage', '-o', 'json', '--by=pod', `--web.listen-address=${new URL(agent.url).host}`]);
      const report = JSON.parse(stdout) as { source: string; rows: { name: string; shareSeconds: number }[] };
      expect([status, report.source]).toEqual([0, 'agent']);
      expect(report.rows.length).toBeGreaterThan(0);
      expect(report.rows[0]?.shareSeconds).toBeGreaterThan(0);
      await agent.stop('SIGTERM');
      const later = JSON.parse((await usage('-o', 'json', '--by=pod')).stdout) as typeof report;
      expect(later.source).toBe('ledger');
      // The ledger rounds to milliseconds.
      for (const { name, shareSeconds } of report.rows)
        expect(later.rows.find((row) => row.name === name)?.shareSeconds, name).toBeGreaterThanOrEqual(shareSeconds - 0.001);
    } finally {
      await agent.stop('SIGKILL');
    }
  });
});

describe('the table and the CSV', () => {
  const report = usageReport(
    [containerEntry(2, { pod: 'a"b', busySeconds: { gpu: HOUR, memory: 60 }, energyEstimatedJoules: 3_600_000 })],
    { sinceMs: START_MS, untilMs: START_MS + hours(4), by: 'device' },
  );

  it('have the busiest engine, and a mark for an estimate', () => {
    const [, first = ''] = usageTable(report).split('\n');
    expect(first.split(/ {2,}/)).toEqual(['toy/toy-0', '1', '2.00', '0.00', '0%', 'gpu 1.00', '0.00', '~1.00']);
  });

  it('have the cost of the hours where there is a price', () => {
    const prices = { toy: 2.5 };
    const priced = usageReport([containerEntry(2, { idleSeconds: HOUR })], {
      sinceMs: START_MS,
      untilMs: START_MS + hours(4),
      by: 'pod',
      prices,
    });
    const [head = '', first = ''] = usageTable(priced).split('\n');
    expect(head).toContain('COST  IDLE COST');
    expect(first.split(/ {2,}/).slice(-2)).toEqual(['5.00', '2.50']);
    expect(usageTable({ ...priced, currency: 'EUR' }).split('\n')[0]).toContain('COST EUR  IDLE COST EUR');
    expect(usageCsv(priced).split('\r\n')[0]).toContain('transmittedBytes,cost,idleCost');
    expect(head.includes('COST') && usageTable(report).includes('COST')).toBe(false);
  });

  it('quote what CSV needs to be quoted, and leave unknown amounts empty', () => {
    const pods = usageReport([containerEntry(2, { pod: 'a"b,c', busySeconds: { gpu: HOUR } })], {
      ...{ sinceMs: START_MS, untilMs: START_MS + hours(4), by: 'pod' as const },
    });
    expect(usageCsv(pods)).toBe(
      'pod,containers,allocatedSeconds,shareSeconds,idleSeconds,idleRatio,idleShareSeconds,unobservedSeconds,energyJoules,energyEstimatedJoules,' +
        'memoryByteSeconds,receivedBytes,transmittedBytes,busySeconds.gpu\r\n' +
        '"ml/a""b,c",1,7200,7200,0,0,0,0,,,,,,3600\r\n',
    );
  });
});
