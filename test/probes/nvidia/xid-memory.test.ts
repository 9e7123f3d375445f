import { describe, expect, it } from 'vitest';
import type { KmsgMessage } from '../../../src/host/kernel-log/reader.ts';
import { type KmsgRecord, parseKmsgRecord } from '../../../src/host/kernel-log/record.ts';
import type { Device } from '../../../src/model/device.ts';
import { NO_MARK } from '../../../src/model/fault.ts';
import type { Finding } from '../../../src/model/health.ts';
import { BEFORE_CAUSE_MS, CHANNELS_REMOVED } from '../../../src/probes/nvidia/channel-removals.ts';
import { logConditions, type XidReport, xidReports } from '../../../src/probes/nvidia/log-findings.ts';
import { faultsOf, XidFaults } from '../../../src/probes/nvidia/xid-faults.ts';
import { parseNvidiaLine } from '../../../src/probes/nvidia/xid-line.ts';
import { EMPTY_MEMORY, endFaults, rememberLine, type XidMemory } from '../../../src/probes/nvidia/xid-memory.ts';
import { escaped } from '../../support/forged-records.ts';

const T0 = Date.parse('2026-01-01T00:00:00Z');
const GPU = 'GPU-00000000-0000-0000-0000-00000000000';

const gpu = (index: number): Device => ({
  family: 'nvidia',
  id: `${GPU}${index}`,
  kind: 'gpu',
  aliases: [],
  uuid: `${GPU}${index}`,
  pciAddress: `0000:0${index}:00.0`,
});
const instance = (parent: number, gpuInstance: number, computeInstance: number): Device => ({
  family: 'nvidia',
  id: `MIG-${parent}/${gpuInstance}/${computeInstance}`,
  kind: 'mig',
  aliases: [],
  parent: `${GPU}${parent}`,
  pciAddress: `0000:0${parent}:00.0`,
  gpuInstance,
  computeInstance,
});
const eight = Array.from({ length: 8 }, (_, index) => gpu(index));
/** GPU 1 has MIG: one GPU instance with two compute instances, and two with one each. */
const split = [gpu(0), gpu(1), instance(1, 1, 0), instance(1, 1, 1), instance(1, 5, 0), instance(1, 13, 0), gpu(2)];

/** Lines one second apart, numbered, from `T0` on. */
class Log {
  memory: XidMemory = EMPTY_MEMORY;
  readonly faults = new XidFaults(NO_MARK);
  #seq = 0;

  message(text: string, more: Partial<KmsgMessage> = {}): KmsgMessage {
    const seq = this.#seq++;
    const record = parseKmsgRecord(`3,${seq},${seq * 1_000_000},-;${escaped(text)}`) as KmsgRecord;
    return { ...record, timeMs: T0 + seq * 1_000, live: true, ...more };
  }

  add(...texts: readonly string[]): this {
    for (const text of texts) this.put(this.message(text));
    return this;
  }

  put(message: KmsgMessage): this {
    const line = parseNvidiaLine(message);
    if (line === undefined) return this;
    this.memory = rememberLine(this.memory, line, message);
    if (line.kind === 'xid') this.faults.put(this.memory, line.pciAddress, message, '');
    return this;
  }

  get nowMs(): number {
    return T0 + this.#seq * 1_000;
  }

  /** Findings of lines. If the log `isReadable`, the absence of lines also gives findings. */
  report(devices: readonly Device[] = eight, nowMs = this.nowMs, isReadable = false): ReadonlyMap<string, XidReport> {
    return xidReports(this.memory, devices, nowMs, isReadable);
  }

  /** `device: Type/instance severity remedy` of what holds. */
  holding(devices: readonly Device[] = eight, nowMs = this.nowMs): readonly string[] {
    return [...this.report(devices, nowMs)].flatMap(([id, { findings }]) =>
      findings.filter(({ status }) => status === true).map((finding) => `${id.replace(GPU, '')}: ${words(finding)}`),
    );
  }
}

function words({ type, instance: part, severity, remedy }: Finding): string {
  return [`${type}${part === undefined ? '' : `/${part}`}`, severity, remedy].filter((word) => word !== undefined).join(' ');
}

const xid = (index: number, text: string, part = ''): string => `NVRM: Xid (PCI:0000:0${index}:00${part}): ${text}`;
const to = (index: number, from: number, action: number): string =>
  xid(index, `154, GPU recovery action changed from 0x${from} (x) to 0x${action} (y)`);

/** `device: xid count` of the faults. */
function counts(log: Log, devices: readonly Device[] = eight): readonly string[] {
  const found = faultsOf(log.faults.take(log.nowMs), devices, { processOf: () => undefined, memory: log.memory, isServed: () => false });
  return [...found]
    .flatMap(([id, faults]) => {
      const codes = [...new Set(faults.map(({ code }) => code))].sort();
      const total = (code: string): number => faults.filter((one) => one.code === code).reduce((sum, { count }) => sum + count, 0);
      return codes.map((code) => `${id.replace(GPU, '')}: ${code} ${total(code)}`);
    })
    .sort();
}

describe('a log without a line about a device', () => {
  const told = (log: Log, isReadable: boolean, devices = eight): readonly (readonly [string, unknown])[] =>
    [...log.report(devices, log.nowMs, isReadable)].flatMap(([id, { findings }]) =>
      findings
        .filter(({ instance: part }) => part === undefined)
        .map(({ type, status }) => [`${id.replace(GPU, '')}: ${type}`, status] as const),
    );

  it('gives the finding that no error was reported lately, if it can be read', () => {
    expect(told(new Log(), true)).toEqual(eight.map((_, index) => [`${index}: XidPassing`, false]));
    expect(told(new Log(), false)).toEqual([]);
  });

  it('does not end an error that is passing, when it ends others', () => {
    const log = new Log().add(xid(1, '13, pid=1, name=a, text'));
    const findings = log.report(eight, log.nowMs, true).get(`${GPU}1`)?.findings ?? [];
    expect(findings.map(({ type, instance: part, status }) => [type, part, status])).toEqual([
      ['XidPassing', '13', true],
      ['XidPassing', undefined, false],
    ]);
  });

  it('does not end lasting errors, and ends switch errors only after a load of the driver', () => {
    const log = new Log().add(
      xid(1, '79, GPU has fallen off the bus.'),
      'nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 x',
    );
    const before = told(log, true);
    expect(before).not.toContainEqual(['1: Xid', false]);
    expect(before.map(([name]) => name)).not.toContain('0: NvSwitchFault');
    log.add('NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06');
    expect(told(log, true)).toContainEqual(['0: NvSwitchFault', false]);
  });
});

describe('a fault', () => {
  it('of one GPU does not affect its seven neighbours', () => {
    const log = new Log().add(xid(3, '79, GPU has fallen off the bus.'));
    expect(log.holding()).toEqual(['3: Xid/79 fatal reboot']);
    expect([...log.report().keys()]).toEqual([`${GPU}3`]);
  });

  it('stays for as long as nothing ends it', () => {
    const log = new Log().add(xid(3, '79, GPU has fallen off the bus.'));
    expect(log.holding(eight, log.nowMs + 90 * 86_400_000)).toEqual(['3: Xid/79 fatal reboot']);
  });

  it('has a message with the error, the process and the count', () => {
    const log = new Log().add(xid(1, '95, pid=77, name=train, Uncontained: FBHUB (0x1)'));
    log.put(log.message(xid(1, '95, pid=77, name=train, Uncontained: FBHUB (0x2)')));
    expect(log.report().get(`${GPU}1`)?.findings).toEqual([
      {
        type: 'Xid',
        instance: '95',
        status: true,
        reason: 'Hardware',
        severity: 'fatal',
        remedy: 'reset',
        message: 'Xid 95: uncorrectable memory error, not contained; process 77 (train); Uncontained: FBHUB (0x2); 2 times',
      },
    ]);
  });

  it('keeps its severity after a later, less severe line', () => {
    const log = new Log().add(
      xid(1, '149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6)'),
      xid(1, '149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 03 (0x004505c6)'),
    );
    expect(log.holding()).toEqual(['1: Xid/149 fatal reset']);
    expect(log.report().get(`${GPU}1`)?.findings[0]?.message).toContain('Link 08');
  });

  it.each([
    ['Contained: SM. RST: No, D-RST: No', '1: XidPassing/94 degraded restart-workload'],
    ['Contained: SM. RST: No, D-RST: Yes', '1: Xid/94 degraded reset'],
    ['Contained: SM', '1: Xid/94 degraded restart-workload'],
  ])('of a contained memory error makes the device degraded, and passes when its line asks for no reset: %s', (text, shown) => {
    expect(new Log().add(xid(1, `94, pid=5, ${text}`)).holding()).toEqual([shown]);
  });

  it('gives only declared types and reasons', () => {
    const log = new Log().add(...Array.from({ length: 200 }, (_, number) => xid(1, `${number}, text`)), to(1, 0, 1), to(1, 1, 0));
    log.add(
      xid(2, '79, x'),
      xid(1, '13, x'),
      'NVRM: GPU 0000:04:00.0: GPU has fallen off the bus.',
      'nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 1, Fatal, x',
    );
    const reasons = new Map<string, readonly string[]>(Object.values(logConditions).map((spec) => [spec.type, spec.reasons]));
    const findings = [...log.report().values()].flatMap((report) => report.findings);
    expect(findings.length).toBeGreaterThan(10);
    for (const finding of findings) expect(reasons.get(finding.type), finding.type).toContain(finding.reason);
  });
});

describe('an error that passes', () => {
  const application = [8, 13, 31, 43, 45, 68, 69];

  it.each(application)('of an application (%i) is reported and makes no device unhealthy', (number) => {
    const log = new Log().add(xid(1, `${number}, pid=5, name=python, Ch 00000008`));
    const atMs = log.nowMs + (number === CHANNELS_REMOVED ? BEFORE_CAUSE_MS : 0);
    expect(log.holding(eight, atMs)).toEqual([`1: XidPassing/${number} info restart-workload`]);
  });

  it('is no longer reported after a minute, so that the quiet time of the policy begins', () => {
    const log = new Log().add(xid(1, '13, pid=5, name=python, Graphics Exception'));
    expect(log.holding(eight, T0 + 59_000)).toHaveLength(1);
    expect(log.holding(eight, T0 + 61_000)).toEqual([]);
    expect(log.report(eight, T0 + 61_000).get(`${GPU}1`)?.readings).toHaveLength(1);
  });

  it('from before the start of the agent is counted but not reported again', () => {
    const log = new Log();
    log.put(log.message(xid(1, '13, Graphics Exception'), { timeMs: T0 - 3_600_000, live: false }));
    const { timeMs, ...undated } = log.message(xid(1, '31, MMU Fault'), { live: false });
    log.put(undated);
    expect(timeMs).toBeDefined();
    expect(log.holding()).toEqual([]);
    expect(log.report().get(`${GPU}1`)?.readings).toEqual([
      { metric: 'device_nvidia_xid_last_timestamp_seconds', labels: { xid: '13' }, value: (T0 - 3_600_000) / 1_000 },
    ]);
    expect(counts(log)).toEqual(['1: 13 1', '1: 31 1']);
  });

  it('with an unknown number passes', () => {
    expect(new Log().add(xid(1, '4711, brand new')).holding()).toEqual(['1: XidPassing/4711 degraded inspect']);
  });
});

describe("the driver's recovery action", () => {
  it('outranks the remedy of the table, on its GPU alone', () => {
    const log = new Log().add(xid(1, '119, Timeout'), xid(2, '119, Timeout'), to(1, 0, 2));
    expect(log.holding()).toEqual(['1: Xid/154 fatal reboot', '1: Xid/119 fatal reboot', '2: Xid/119 fatal reset']);
  });

  it('makes a GPU unhealthy even if the error alone is only degraded', () => {
    expect(new Log().add(xid(1, '94, Contained'), to(1, 0, 4)).holding()).toEqual(['1: Xid/154 fatal reset', '1: Xid/94 degraded reset']);
  });

  it('counts with its latest value', () => {
    expect(new Log().add(to(1, 0, 1), to(1, 1, 2)).holding()).toEqual(['1: Xid/154 fatal reboot']);
  });

  it('of zero ends every fault of its GPU, with a finding', () => {
    const log = new Log().add(xid(1, '79, x'), xid(1, '64, x'), xid(1, '48, x', ' GPU-I:05'), xid(2, '79, x'), to(1, 0, 2), to(1, 2, 0));
    expect(log.holding()).toEqual(['2: Xid/79 fatal reboot']);
    expect(log.report().get(`${GPU}1`)?.findings).toEqual([
      { type: 'Xid', status: false, reason: 'Recovered', message: 'the GPU has recovered since' },
      { type: 'GpuFallenOffBus', status: false, reason: 'Recovered', message: 'the GPU has recovered since' },
    ]);
  });

  it('changes as often as the driver reports, also within a minute and with the same text', () => {
    const log = new Log();
    for (let turn = 0; turn < 5; turn++) {
      log.add(xid(1, '119, Timeout'), to(1, 0, 1));
      expect(log.holding()).toEqual(['1: Xid/154 fatal reset', '1: Xid/119 fatal reset']);
      log.add(to(1, 1, 0));
      expect(log.holding()).toEqual([]);
    }
  });

  it('that is unknown has the remedy `inspect`', () => {
    expect(new Log().add(xid(1, '154, GPU recovery action changed')).holding()).toEqual(['1: Xid/154 fatal inspect']);
  });
});

describe('evidence from outside the log', () => {
  it('of a reset ends earlier faults that a reset repairs', () => {
    const log = new Log().add(xid(1, '48, x'), xid(1, '79, x'), xid(1, '64, x'), xid(2, '48, x'));
    const resetAt = log.nowMs;
    log.add(xid(1, '95, x'));
    log.memory = endFaults(log.memory, '0000:01:00.0', 'reset', resetAt);
    expect(log.holding()).toEqual(['1: Xid/64 fatal replace', '1: Xid/95 fatal reset', '2: Xid/48 fatal reset']);
  });

  it('that the recovery action is "none" ends all earlier faults', () => {
    const log = new Log().add(xid(1, '64, x'), to(1, 0, 1), 'NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.');
    log.memory = endFaults(log.memory, '0000:01:00.0', 'driver-asks-nothing', log.nowMs);
    expect(log.holding()).toEqual([]);
    log.add(xid(1, '48, x'));
    expect(log.holding()).toEqual(['1: Xid/48 fatal reset']);
  });

  it('is not repeated', () => {
    const log = new Log().add(xid(1, '48, x'));
    const once = endFaults(log.memory, '0000:01:00.0', 'reset', log.nowMs);
    expect(endFaults(once, '0000:01:00.0', 'reset', log.nowMs + 1)).toBe(once);
  });

  it('does not end a later loss', () => {
    const log = new Log();
    const resetAt = log.nowMs;
    log.add('NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.');
    log.memory = endFaults(log.memory, '0000:01:00.0', 'reset', resetAt);
    expect(log.holding()).toEqual(['1: GpuFallenOffBus reboot']);
  });
});

describe('counting', () => {
  it('counts identical lines of different faults', () => {
    const log = new Log();
    for (let turn = 0; turn < 90; turn++) log.add(xid(1, '31, pid=5, name=a, Ch 1'));
    expect(counts(log)).toEqual(['1: 31 90']);
  });

  it('counts different lines separately', () => {
    expect(counts(new Log().add(xid(1, '31, Ch 1'), xid(1, '31, Ch 2'), xid(1, '13, Ch 1'), xid(2, '31, Ch 1')))).toEqual([
      '1: 13 1',
      '1: 31 2',
      '2: 31 1',
    ]);
  });

  it('changes nothing when the log is read again', () => {
    const texts = [
      xid(1, '48, x'),
      xid(1, '79, y'),
      to(1, 0, 1),
      to(1, 1, 0),
      xid(1, '13, z'),
      'NVRM: GPU 0000:02:00.0: GPU has fallen off the bus.',
    ];
    const first = new Log();
    const messages = texts.map((text) => first.message(text));
    for (const message of messages) first.put(message);
    const before = first.memory;
    for (const message of messages) first.put(message);
    expect(first.memory).toEqual(before);
    expect(first.holding()).toEqual(['1: XidPassing/13 info restart-workload', '2: GpuFallenOffBus reboot']);
  });

  it('counts an error on the one instance that it names, and otherwise on the GPU', () => {
    const log = new Log().add(
      xid(1, '13, a', ' GPU-I:05 GPU-CI:00'),
      xid(1, '13, b', ' GPU-I:01'),
      xid(1, '13, c'),
      xid(1, '13, d', ' GPU-I:09'),
    );
    expect(counts(log, split)).toEqual(['1: 13 3', 'MIG-1/5/0: 13 1']);
  });
});

describe('on a GPU with MIG', () => {
  it.each([
    ['of the whole GPU concerns all of it', '48, x', '', ['1', 'MIG-1/1/0', 'MIG-1/1/1', 'MIG-1/5/0', 'MIG-1/13/0']],
    ['of a GPU instance concerns its compute instances', '48, x', ' GPU-I:01', ['MIG-1/1/0', 'MIG-1/1/1']],
    ['of a compute instance concerns that one', '48, x', ' GPU-I:01 GPU-CI:01', ['MIG-1/1/1']],
    ['of an instance with a number of two digits is read as decimal', '94, x', ' GPU-I:13 GPU-CI:00', ['MIG-1/13/0']],
    ['of an instance that is gone stays with the GPU', '94, x', ' GPU-I:09', ['1']],
    [
      'of a part that all share concerns all of it, whatever instance is named',
      '95, x',
      ' GPU-I:05',
      ['1', 'MIG-1/1/0', 'MIG-1/1/1', 'MIG-1/5/0', 'MIG-1/13/0'],
    ],
    ['of the bus concerns all of it', '79, x', ' GPU-I:05', ['1', 'MIG-1/1/0', 'MIG-1/1/1', 'MIG-1/5/0', 'MIG-1/13/0']],
    [
      'of the system processor concerns all of it',
      '119, x',
      ' GPU-I:05 GPU-CI:00',
      ['1', 'MIG-1/1/0', 'MIG-1/1/1', 'MIG-1/5/0', 'MIG-1/13/0'],
    ],
    ['of an application concerns its instance', '13, x', ' GPU-I:05 GPU-CI:00', ['MIG-1/5/0']],
  ])('an error %s', (_, text, part, ids) => {
    const log = new Log().add(xid(1, text, part));
    expect(log.holding(split).map((word) => word.split(': ')[0])).toEqual(ids);
  });

  it('a recovery action concerns all of it', () => {
    const log = new Log().add(xid(1, '48, x', ' GPU-I:05'), to(1, 0, 1));
    expect(log.holding(split)).toHaveLength(6);
    log.add(to(1, 1, 0));
    expect(log.holding(split)).toEqual([]);
  });
});

describe('a GPU that is lost without an Xid', () => {
  it('is reported by one line', () => {
    expect(new Log().add('NVRM: GPU 0000:04:00.0: GPU has fallen off the bus.').holding()).toEqual(['4: GpuFallenOffBus reboot']);
  });

  it('is reported by several records, with others in between', () => {
    const log = new Log().add(
      'NVRM: The NVIDIA GPU 0000:04:00.0',
      'mlx5_core 0000:05:00.0: something else',
      'NVRM: (PCI ID: 10de:26b5) installed in this system has',
      'NVRM: fallen off the bus and is not responding to commands.',
    );
    expect(log.holding()).toEqual(['4: GpuFallenOffBus reboot']);
  });

  it('is reported by several lines of one record', () => {
    const text =
      'NVRM: The NVIDIA GPU 0000:04:00.0 (PCI ID: 10de:1e07) installed in this\nNVRM: system has fallen off the bus and is not responding to commands.';
    expect(new Log().add(text).holding()).toEqual(['4: GpuFallenOffBus reboot']);
  });

  it('is not a GPU that an earlier, unrelated message named', () => {
    const log = new Log().add(
      'NVRM: The NVIDIA GPU 0000:04:00.0',
      'NVRM: None of the NVIDIA devices were initialized.',
      'NVRM: fallen off the bus and is not responding to commands.',
    );
    expect(log.holding()).toEqual([]);
  });

  it('is reported once when an Xid also reports it', () => {
    const log = new Log().add('NVRM: GPU 0000:04:00.0: GPU has fallen off the bus.', xid(4, '79, GPU has fallen off the bus.'));
    expect(log.holding()).toEqual(['4: Xid/79 fatal reboot']);
  });
});

describe('the rest of the log', () => {
  it('matches a GPU of unknown address to its lines by the UUID in the log', () => {
    const { pciAddress, ...unplaced } = gpu(1);
    const { pciAddress: place, ...unplacedInstance } = instance(1, 5, 0);
    expect([pciAddress, place]).toEqual(['0000:01:00.0', '0000:01:00.0']);
    const log = new Log().add(`NVRM: GPU at PCI:0000:01:00: ${GPU}1`, xid(1, '79, x'));
    expect(log.holding([gpu(0), unplaced, unplacedInstance])).toEqual(['1: Xid/79 fatal reboot', 'MIG-1/5/0: Xid/79 fatal reboot']);
  });

  it('makes every GPU degraded, and none unhealthy, when a switch of their fabric fails', () => {
    const log = new Log().add(
      'nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate',
      'nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 11001, Fatal, ingress invalid command',
    );
    expect(log.holding()).toEqual(eight.map((_, index) => `${index}: NvSwitchFault/0000:c3:00.0`));
    log.add('NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14');
    expect(log.holding()).toEqual([]);
    expect(log.memory.driverLoadedAtMs).toBe(log.nowMs - 1_000);
  });

  it('is ignored when it is not from the driver', () => {
    const log = new Log().add('EXT4-fs (vda): mounted filesystem', 'random: crng init done', '');
    expect(log.memory).toBe(EMPTY_MEMORY);
  });

  it('limits its memory, however much is logged', () => {
    const log = new Log();
    for (let turn = 0; turn < 5_000; turn++) log.add(xid(1, `31, Ch ${turn}`));
    const [remembered] = [...log.memory.gpus.values()];
    expect(remembered?.tallies).toHaveLength(1);
    expect(remembered?.tallies[0]?.count).toBe(5_000);
    expect(remembered?.recent.length).toBeLessThanOrEqual(256);
  });
});
