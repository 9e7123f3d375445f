import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { DeviceReport } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { hours } from '../../../src/model/duration.ts';
import type { ConditionSpec } from '../../../src/model/health.ts';
import { growthCondition, raise } from '../../../src/probes/kit/finding.ts';
import { type LogRow, RowLog } from '../../../src/probes/kit/log-rows.ts';
import { familyMetrics } from '../../../src/probes/kit/metrics.ts';

/** An adapter whose firmware can die, and whose commands can time out. */
const { counter } = familyMetrics('acme');
const timeouts = counter('command_timeouts_total', 'Commands that timed out.', [], 'kernel log');
const FirmwareDead = {
  type: 'FirmwareDead',
  class: 'latched',
  severity: 'fatal',
  reasons: ['Syndrome', 'DriverLoaded'],
  meaning: 'The firmware stopped.',
  remedy: 'reset',
  source: 'kernel log',
} as const satisfies ConditionSpec;
const Timeouts = growthCondition({
  type: 'Timeouts',
  severity: 'degraded',
  meaning: 'Commands time out.',
  remedy: 'inspect',
  source: 'kernel log',
  growth: 0,
  windowMs: hours(1),
});
const rows: readonly LogRow[] = [
  {
    name: 'dead',
    drivers: ['acme_core', 'acme'],
    text: /^health compromised, synd 0x([0-9a-f]{1,8})$/,
    findings: ([syndrome]) => [raise(FirmwareDead, 'Syndrome', { status: true, message: `syndrome ${syndrome}` })],
  },
  {
    name: 'loaded',
    drivers: ['acme_core'],
    text: /^firmware version: /,
    findings: () => [raise(FirmwareDead, 'DriverLoaded', { status: false, message: 'the driver was loaded' })],
  },
  {
    name: 'timeout',
    drivers: ['acme_core'],
    text: /^command (\w+) timeout$/,
    counts: { metric: timeouts, growth: { condition: Timeouts, what: 'timeouts' } },
    fault: ([command = '']) => ({
      type: 'CommandTimeout',
      code: command,
      reason: 'Timeout',
      severity: 'degraded',
      remedy: 'restart-workload',
      message: `the command ${command} timed out`,
    }),
  },
];

const CARD = '0000:3b:00.0';
const FUNCTION = '0000:3b:00.2';
const cardReport: DeviceReport = { device: device(CARD) };
const functionReport: DeviceReport = { device: { ...device(FUNCTION), physicalFunction: CARD } };

function device(pciAddress: string): Device {
  return { family: 'acme', id: pciAddress, kind: 'pf', aliases: [], pciAddress };
}

const record = (seq: number, text: string, address = CARD): string =>
  `3,${seq},${seq * 1_000_000},-;${text}\n SUBSYSTEM=pci\n DEVICE=+pci:${address}\n`;

let directory: string;
let log: RowLog;
let nowMs: number;
let wake: () => void;
const clock: Clock = {
  now: () => 1_000_000 + nowMs,
  monotonic: () => nowMs,
  after: (_, then) => {
    wake = then;
    return () => {};
  },
};
const write = (...records: readonly string[]): void => appendFileSync(join(directory, 'kmsg'), records.join(''));

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'log-rows-'));
  writeFileSync(join(directory, 'kmsg'), '');
  nowMs = 10_000;
  const host = createHost({ sysfs: directory, procfs: directory, dev: directory, kmsg: join(directory, 'kmsg') }, clock);
  log = new RowLog(host, rows, [FirmwareDead, Timeouts]);
  log.poll();
});
afterEach(() => {
  log.close();
  rmSync(directory, { recursive: true, force: true });
});

const told = (report: DeviceReport) => {
  log.poll();
  const { outOfBand, faults = [] } = log.withLog(report);
  return {
    findings: (outOfBand?.findings ?? []).map(({ type, status, count, message }) => `${type} ${status ?? count} ${message}`),
    faults: faults.map(({ code, count, remedy, counter: { metric } }) => `${code} ${count} ${remedy} ${metric}`),
  };
};

describe('rows of the kernel log', () => {
  it('tell a condition with the groups of the line, until another line ends it', () => {
    write(record(1, `acme_core ${CARD}: health compromised, synd 0x1a`));
    expect(told(cardReport).findings).toEqual(['FirmwareDead true syndrome 1a', 'Timeouts 0 timeouts: 0']);
    write(record(2, `acme_core ${CARD}: firmware version: 1.2`));
    expect(told(cardReport).findings[0]).toBe('FirmwareDead false the driver was loaded');
  });

  it('count lines, and tell each as a fault for a minute', () => {
    write(record(1, `acme_core ${CARD}: command create_cq timeout`), record(2, `acme_core ${CARD}: command create_qp timeout`));
    expect(told(cardReport)).toEqual({
      findings: ['Timeouts 2 timeouts: 2'],
      faults: [
        'create_cq 1 restart-workload device_acme_command_timeouts_total',
        'create_qp 1 restart-workload device_acme_command_timeouts_total',
      ],
    });
    nowMs += 61_000;
    expect(told(cardReport)).toEqual({ findings: ['Timeouts 2 timeouts: 2'], faults: [] });
  });

  it('repeat the latest fault of a kind in a flood', () => {
    for (let seq = 1; seq <= 300; seq += 1) write(record(seq, `acme_core ${CARD}: command create_cq timeout`));
    const { faults } = told(cardReport);
    expect([faults.length, faults.at(-1)]).toEqual([256, 'create_cq 45 restart-workload device_acme_command_timeouts_total']);
  });

  it('make a fault of a card one of its functions, without its counts', () => {
    write(record(1, `acme ${CARD}: health compromised, synd 0x2`), record(2, `acme_core ${FUNCTION}: firmware version: 1.2`, FUNCTION));
    expect(told(functionReport).findings).toEqual(['FirmwareDead true syndrome 2']);
  });

  it('believe neither a program, nor a record of another device, of another bus or of none', () => {
    const text = `acme_core ${CARD}: health compromised, synd 0x1a`;
    write(
      record(1, text).replace('3,', '11,'),
      record(2, text, '0000:5e:00.0'),
      record(3, text).replace('SUBSYSTEM=pci', 'SUBSYSTEM=usb'),
      `3,4,4,-;${text}\n`,
      record(5, `other ${CARD}: health compromised, synd 0x1a`),
    );
    expect(told(cardReport).findings).toEqual(['Timeouts 0 timeouts: 0']);
  });

  it('keep what is wrong and forget what was well when records are lost, and say so for an hour', () => {
    write(
      record(1, `acme_core ${CARD}: firmware version: 1.2`),
      record(2, `acme_core ${FUNCTION}: health compromised, synd 0x2`, FUNCTION),
    );
    expect(told(cardReport).findings[0]).toBe('FirmwareDead false the driver was loaded');
    write(record(7, 'acme_core: something'));
    expect(told(cardReport).findings).toEqual(['Timeouts 0 timeouts: 0']);
    expect(told({ device: device(FUNCTION) }).findings[0]).toBe('FirmwareDead true syndrome 2');
    expect(log.problems.map(({ code }) => code)).toEqual(['kmsg-lost']);
    nowMs += 3_600_001;
    expect(log.problems).toEqual([]);
  });

  it('tell only what is wrong while the log cannot be read', () => {
    write(
      record(1, `acme_core ${CARD}: firmware version: 1.2`),
      record(2, `acme_core ${FUNCTION}: health compromised, synd 0x2`, FUNCTION),
    );
    log.poll();
    rmSync(join(directory, 'kmsg'));
    expect(told(cardReport).findings).toEqual([]);
    expect(told({ device: device(FUNCTION) }).findings).toEqual(['FirmwareDead true syndrome 2']);
    expect(log.problems.map(({ code }) => code)).toEqual(['kmsg-missing']);
  });

  it('wake the probe when a line means something, and not for others', () => {
    let woken = 0;
    log.watch(() => {
      woken += 1;
    });
    write(record(1, 'acme_core: nothing'));
    wake();
    expect(woken).toBe(0);
    write(record(2, `acme_core ${CARD}: command create_cq timeout`));
    wake();
    expect(woken).toBe(1);
  });
});
