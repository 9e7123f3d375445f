import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { DeviceReport } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { hours } from '../../../src/model/duration.ts';
import { type LogRow, logCondition, logGrowth } from '../../../src/probes/kit/log-row.ts';
import { RowLog } from '../../../src/probes/kit/log-rows.ts';

/** An adapter whose firmware can die, and whose commands can time out. */
const FirmwareDead = logCondition({
  type: 'FirmwareDead',
  severity: 'fatal',
  meaning: 'The firmware stopped.',
  remedy: 'reset',
  source: 'kernel log',
});
const Timeouts = logGrowth({
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
    text: /^health compromised, synd (?<syndrome>0x[0-9a-f]{1,8})$/,
    words: { syndrome: { '0x1': 'firmware assert' } },
    means: 'the firmware stopped: {syndrome}',
    source: 'acme.c',
    raises: { condition: FirmwareDead },
  },
  {
    name: 'loaded',
    drivers: ['acme_core'],
    text: /^firmware version: /,
    means: 'the driver was loaded',
    source: 'acme.c',
    ends: [FirmwareDead],
  },
  {
    name: 'command-timeout',
    drivers: ['acme_core', 'acme_rdma'],
    text: /^command (?<command>\w+) timeout(?: \(pid (?<pid>\d+)\))?$/,
    means: 'the command {command} timed out',
    source: 'acme.c',
    repeats: Timeouts,
    fault: { type: 'CommandTimeout', code: '{command}', severity: 'degraded', remedy: 'restart-workload' },
  },
  {
    name: 'block-error',
    drivers: [],
    text: /^block I\/O error of (?<disk>acme\d+), /,
    withoutDevice: { class: 'block', name: '{disk}' },
    means: 'a request failed',
    source: 'block.c',
    raises: { condition: FirmwareDead, instance: '{disk}' },
  },
  {
    name: 'block-warning',
    drivers: [],
    text: /^block I\/O warning of (?<disk>acme\d+), /,
    withoutDevice: { class: 'block', name: '{disk}' },
    means: 'a request was slow',
    source: 'block.c',
    raises: { condition: { type: 'BlockWarned' }, instance: '{disk}' },
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
  const { outOfBand, faults = [] } = log.withEach([report])[0] as DeviceReport;
  return {
    findings: (outOfBand?.findings ?? []).map(({ type, status, count, message }) => `${type} ${status ?? count} ${message}`),
    faults: faults.map(({ code, count, remedy, counter: { metric } }) => `${code} ${count} ${remedy} ${metric}`),
  };
};

describe('rows of the kernel log', () => {
  it('tell a condition with the groups of the line, until another line ends it', () => {
    write(record(1, `acme_core ${CARD}: health compromised, synd 0x1a`));
    expect(told(cardReport).findings).toEqual(['FirmwareDead true the firmware stopped: 0x1a', 'Timeouts 0 command timeout: 0']);
    write(record(2, `acme_core ${CARD}: firmware version: 1.2`));
    expect(told(cardReport).findings[0]).toBe('FirmwareDead false the driver was loaded');
  });

  it('count lines, and tell each as a fault for a minute', () => {
    write(record(1, `acme_core ${CARD}: command create_cq timeout`), record(2, `acme_core ${CARD}: command create_qp timeout`));
    expect(told(cardReport)).toEqual({
      findings: ['FirmwareDead unknown the kernel log has lost its oldest lines', 'Timeouts 2 command timeout: 2'],
      faults: [
        'create_cq 1 restart-workload device_kernel_log_events_total',
        'create_qp 1 restart-workload device_kernel_log_events_total',
      ],
    });
    nowMs += 61_000;
    expect(told(cardReport)).toEqual({
      findings: ['FirmwareDead unknown the kernel log has lost its oldest lines', 'Timeouts 2 command timeout: 2'],
      faults: [],
    });
  });

  it('repeat the latest fault of a kind in a flood', () => {
    for (let seq = 1; seq <= 300; seq += 1) write(record(seq, `acme_core ${CARD}: command create_cq timeout`));
    const { faults } = told(cardReport);
    expect([faults.length, faults.at(-1)]).toEqual([256, 'create_cq 45 restart-workload device_kernel_log_events_total']);
  });

  it('make a fault of a card one of its functions, without its counts', () => {
    write(record(1, `acme ${CARD}: health compromised, synd 0x2`), record(2, `acme_core ${FUNCTION}: firmware version: 1.2`, FUNCTION));
    expect(told(functionReport).findings).toEqual(['FirmwareDead true the firmware stopped: 0x2']);
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
    expect(told(cardReport).findings).toEqual([
      'FirmwareDead unknown the kernel log has lost its oldest lines',
      'Timeouts 0 command timeout: 0',
    ]);
  });

  it('keep what is wrong and forget what was well when records are lost, and say so for an hour', () => {
    write(
      record(1, `acme_core ${CARD}: firmware version: 1.2`),
      record(2, `acme_core ${FUNCTION}: health compromised, synd 0x2`, FUNCTION),
    );
    expect(told(cardReport).findings[0]).toBe('FirmwareDead false the driver was loaded');
    write(record(7, 'acme_core: something'));
    expect(told(cardReport).findings).toEqual([
      'FirmwareDead unknown the kernel log has lost its oldest lines',
      'Timeouts 0 command timeout: 0',
    ]);
    expect(told({ device: device(FUNCTION) }).findings[0]).toBe('FirmwareDead true the firmware stopped: 0x2');
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
    expect(told(cardReport).findings).toEqual(['FirmwareDead unknown the kernel log is not read']);
    expect(told({ device: device(FUNCTION) }).findings).toEqual(['FirmwareDead true the firmware stopped: 0x2']);
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

  it('deny what no line of the whole boot reports', () => {
    write(`6,0,0,-;Linux version 7.0\n`, record(1, 'acme_core: something'));
    expect(told(cardReport).findings[0]).toBe('FirmwareDead false the kernel log has no such line since the machine booted');
    write(record(7, 'acme_core: something'));
    expect(told(cardReport).findings[0]).toBe('FirmwareDead unknown the kernel log has lost its oldest lines');
  });

  it('are taken for all virtual functions of a node, and say nothing about a device beyond the limit', () => {
    const started = (from: number, to: number): string =>
      Array.from({ length: to - from }, (_, n) => {
        const other = `${(from + n + 1).toString(16).padStart(4, '0')}:3b:00.0`;
        return record(from + n + 1, `acme_core ${other}: firmware version: 1.2`, other);
      }).join('');
    write('6,0,0,-;Linux version 7.0\n', started(0, 1_000), record(1_001, `acme_core ${CARD}: health compromised, synd 0x2`));
    expect(told(cardReport).findings[0]).toBe('FirmwareDead true the firmware stopped: 0x2');
    expect(told({ device: device(FUNCTION) }).findings[0]).toMatch(/^FirmwareDead false/);
    write(started(1_001, 4_200), record(4_201, `acme_core ${FUNCTION}: health compromised, synd 0x2`, FUNCTION));
    const report = { device: device(FUNCTION) };
    expect(told(report).findings).toEqual(['FirmwareDead unknown lines of the kernel log are not taken', 'Timeouts 0 command timeout: 0']);
    const { findings = [], readings } = log.withEach([report])[0]?.outOfBand ?? {};
    expect(findings.map((finding) => [finding.type, finding.count === undefined ? undefined : finding.ceiling])).toEqual([
      ['FirmwareDead', undefined],
      ['Timeouts', 0],
    ]);
    expect(readings).toEqual([]);
    expect(told(cardReport).findings[0]).toBe('FirmwareDead true the firmware stopped: 0x2');
    expect(log.problems.map(({ code }) => code)).toEqual(['kmsg-lost']);
  });

  it('keep a part of each condition in a flood of parts of another one', () => {
    write(record(1, `acme_core ${CARD}: health compromised, synd 0x2`));
    link('class/block/acme7', `devices/pci0000:3a/${CARD}/block/acme7`);
    for (let disk = 0; disk < 70; disk += 1) {
      link(`class/block/acme${disk}0`, `devices/pci0000:3a/${CARD}/block/acme${disk}0`);
      write(`3,${disk + 2},20,-;block I/O warning of acme${disk}0, sector 1\n`);
    }
    expect(told(cardReport).findings.filter((text) => text.startsWith('FirmwareDead'))).toEqual([
      'FirmwareDead true the firmware stopped: 0x2',
    ]);
  });

  /** A record about a device of another kind than a PCI function. */
  const about = (seq: number, text: string, subsystem: string, named: string): string =>
    `3,${seq},${seq * 1_000_000},-;${text}\n SUBSYSTEM=${subsystem}\n DEVICE=${named}\n`;
  const link = (path: string, target: string): void => {
    mkdirSync(join(directory, target), { recursive: true });
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    symlinkSync(join(directory, target), join(directory, path));
  };
  const dead = 'health compromised, synd 0x1';

  it('find the function of an interface, of a part of a driver, of a character device and of a disk', () => {
    const at = `devices/pci0000:3a/${CARD}`;
    link('bus/auxiliary/devices/acme_core.rdma.0', `${at}/acme_core.rdma.0`);
    link('dev/char/240:3', `${at}/acme/acme3`);
    link('class/block/acme7', `${at}/block/acme7`);
    for (const [seq, line] of [
      record(1, `acme_core ${CARD} ens1f0np0: ${dead}`),
      record(3, `acme_core ${CARD} (unnamed net_device) (uninitialized): ${dead}`),
      about(5, `acme acme_core.rdma.0 acme_0: ${dead}`, 'auxiliary', '+auxiliary:acme_core.rdma.0'),
      about(7, `acme acme3: ${dead}`, 'acme', 'c240:3'),
    ].entries()) {
      write(line);
      expect(told(cardReport).findings[0], line).toBe('FirmwareDead true the firmware stopped: firmware assert');
      write(record(2 + 2 * seq, `acme_core ${CARD}: firmware version: 1.2`));
      expect(told(cardReport).findings[0]).toBe('FirmwareDead false the driver was loaded');
    }
    write('3,9,20,-;block I/O error of acme7, sector 1\n');
    expect(told(cardReport).findings.slice(0, 2)).toEqual([
      'FirmwareDead false the driver was loaded',
      'FirmwareDead true a request failed',
    ]);
  });

  it('know a device that is gone by its name, and refuse a number that another device has', () => {
    const gone: DeviceReport = { device: { ...device(CARD), characterDevices: ['/dev/acme3'] } };
    log.withLogs({ reports: [gone], problems: [], listing: 'complete' });
    link('dev/char/240:4', 'devices/pci0000:3a/0000:5e:00.0/acme/acme4');
    write(about(1, `acme acme3: ${dead}`, 'acme', 'c240:4'));
    expect(told(cardReport).findings[0]).toMatch(/unknown/);
    write(about(2, `acme acme3: ${dead}`, 'acme', 'c240:3'));
    expect(told(cardReport).findings[0]).toMatch(/true/);
  });

  it('name the process of a new line by the files of the kernel', () => {
    mkdirSync(join(directory, '4711'));
    const pod = '0b5c7d0e-1111-2222-3333-444455556666';
    writeFileSync(
      join(directory, '4711/cgroup'),
      `0::/kubepods.slice/kubepods-pod${pod.replaceAll('-', '_')}.slice/cri-containerd-${'a'.repeat(64)}.scope\n`,
    );
    write(record(1, `acme_core ${CARD}: command create_cq timeout (pid 4711)`));
    log.poll();
    expect(log.withEach([cardReport])[0]?.faults?.[0]?.process).toEqual({ pid: 4711, podUid: pod, containerId: 'a'.repeat(64) });
  });
});
