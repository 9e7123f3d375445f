import { existsSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { eventState, simulate } from '../../../src/sim/families/amdgpu/simulate.ts';
import { emptyMachine, holding, type ProbedMachine, probeOn, reportOf, seriesOf, simulatedMachine } from './harness.ts';

const FIRST = '0020:10:00.0';
const SECOND = '0020:11:00.0';
const directoryOf = (address: string): string => `sys/devices/pci0020:00/0020:00:${address === FIRST ? '01' : '02'}.0/${address}`;

let machine: ProbedMachine;
afterEach(() => machine.end());

const finding = (address: string, type: string) =>
  reportOf(machine.collect(), address)
    .findings.filter((each) => each.type === type)
    .map(({ status, reason }) => [status, reason]);

describe('a sleeping card', () => {
  it('keeps its identity, and has no value but that it sleeps', () => {
    machine = simulatedMachine(2);
    const awake = reportOf(machine.collect(), SECOND);
    machine.write(`${directoryOf(SECOND)}/power/runtime_status`, 'suspended\n');
    const asleep = reportOf(machine.collect(), SECOND);
    expect(asleep.device).toEqual(awake.device);
    expect(seriesOf(asleep)).toEqual({ device_amdgpu_asleep: 1 });
    expect(asleep.findings.filter(({ reason }) => reason !== 'LogUnread').map(({ type, status }) => [type, status])).toEqual([
      ['Resetting', false],
    ]);
    expect(asleep.processes).toBeUndefined();
    machine.write(`${directoryOf(SECOND)}/power/runtime_status`, 'active\n');
    expect(seriesOf(reportOf(machine.collect(), SECOND))).toEqual(seriesOf(awake));
  });

  it.each(['suspending', 'resuming'])('that is %s is not touched either', (status) => {
    machine = simulatedMachine(1);
    machine.write(`${directoryOf(FIRST)}/power/runtime_status`, `${status}\n`);
    expect(seriesOf(reportOf(machine.collect(), FIRST))).toEqual({ device_amdgpu_asleep: 1 });
  });
});

/** A machine whose reads pass a filter, which may answer with other bytes or the name of an error instead. */
function filteredMachine(answerTo: (path: string) => string | Buffer | undefined): ProbedMachine {
  return probeOn(simulatedMachine(2).root, {}, undefined, answerTo);
}

const isOfDriver = (path: string): boolean => /_busy_percent$|\/hwmon\d+\/\w+_(?:input|average)$|gpu_metrics$/.test(path);

describe('a driver that refuses reads', () => {
  it.each(['EPERM', 'EBUSY'])('with %s while the card is awake resets it, and what still answers is told', (error) => {
    let isRefusing = false;
    machine = filteredMachine((path) => (isRefusing && path.includes(FIRST) && isOfDriver(path) ? error : undefined));
    expect(finding(FIRST, 'Resetting')).toEqual([[false, 'ReadsAnswered']]);
    isRefusing = true;
    expect(finding(FIRST, 'Resetting')).toEqual([[true, 'ReadsRefused']]);
    expect(finding(SECOND, 'Resetting')).toEqual([[false, 'ReadsAnswered']]);
    const report = reportOf(machine.collect(), FIRST);
    expect(report.findings.filter(({ type }) => type === 'OverTemperature').map(({ status }) => status)).toEqual(['unknown', 'unknown']);
    expect(seriesOf(report).device_memory_total_bytes).toBe(68_719_476_736);
    expect(machine.collect().problems).toEqual([]);
    isRefusing = false;
    expect(finding(FIRST, 'Resetting')).toEqual([[false, 'ReadsAnswered']]);
  });

  it('because the card fell asleep during the read is no reset', () => {
    let looks = 0;
    machine = filteredMachine((path) => {
      if (!path.includes(FIRST)) return undefined;
      if (path.endsWith('runtime_status')) return Buffer.from(++looks === 1 ? 'active\n' : 'suspended\n');
      return isOfDriver(path) ? 'EPERM' : undefined;
    });
    expect(seriesOf(reportOf(machine.collect(), FIRST))).toEqual({ device_amdgpu_asleep: 1 });
    expect(looks).toBe(2);
  });

  it('with EACCES is a problem of permission and no reset', () => {
    machine = filteredMachine((path) => (path.includes(FIRST) && path.endsWith('gpu_busy_percent') ? 'EACCES' : undefined));
    const { problems } = machine.collect();
    expect(problems).toEqual([
      { code: 'permission-denied', message: `/sys/bus/pci/devices/${FIRST}: EACCES of gpu_busy_percent`, device: FIRST },
    ]);
    expect(finding(FIRST, 'Resetting')).toEqual([[false, 'ReadsAnswered']]);
  });

  it('that never returns leaves the card without a read, and the other card with one', () => {
    machine = filteredMachine((path) => (path.includes(FIRST) && path.endsWith('event_state') ? 'EHUNG' : undefined));
    const { reports, problems } = machine.collect();
    expect(reports.map(({ device, read }) => [device.id, read === undefined])).toEqual([
      [FIRST, true],
      [SECOND, false],
    ]);
    expect(problems.map(({ code, device }) => [code, device])).toEqual([['card-hangs', FIRST]]);
  });
});

describe('error handling', () => {
  it('reads the counts rarely, and at once when event_state changes', () => {
    machine = simulatedMachine(1);
    const umc = `${directoryOf(FIRST)}/ras/umc_err_count`;
    machine.collect();
    machine.write(umc, 'ue: 3\nce: 0\nde: 0\n');
    machine.forward(10_000);
    expect(holding(reportOf(machine.collect(), FIRST))).toEqual({});
    machine.write(`${directoryOf(FIRST)}/ras/event_state`, `${eventState(1)}\n`);
    expect(holding(reportOf(machine.collect(), FIRST))).toEqual({
      FatalErrorRecorded: 'FatalErrors',
      'RasUncorrectable/umc': 'UncorrectableErrors',
    });
  });

  it.each([
    ['1m', { 'RasUncorrectable/umc': 'UncorrectableErrors' }],
    ['2m', {}],
  ] as const)('reads the counts after the interval, here %s', (interval, expected) => {
    machine = simulatedMachine(1, { 'ras-interval': interval });
    machine.collect();
    machine.write(`${directoryOf(FIRST)}/ras/umc_err_count`, 'ue: 3\nce: 0\nde: 0\n');
    machine.forward(60_000);
    expect(holding(reportOf(machine.collect(), FIRST))).toEqual(expected);
  });

  it('has no sum while one block does not tell its count', () => {
    machine = simulatedMachine(1);
    const sum = 'device_errors_total{kind=ecc_correctable}';
    const gfx = `${directoryOf(FIRST)}/ras/gfx_err_count`;
    machine.write(gfx, 'ue: 0\nce: 40\n');
    expect(seriesOf(reportOf(machine.collect(), FIRST))[sum]).toBe(40);
    machine.write(gfx, 'Query currently inaccessible\n');
    machine.forward(60_000);
    const report = reportOf(machine.collect(), FIRST);
    expect(seriesOf(report)[sum]).toBeUndefined();
    expect(
      report.findings.filter(({ type, instance }) => type === 'RasUncorrectable' && instance === 'gfx').map(({ status }) => status),
    ).toEqual(['unknown']);
  });

  it('counts a list of bad pages that is longer than what is read as at least that', () => {
    machine = simulatedMachine(1);
    machine.write(`${directoryOf(FIRST)}/ras/gpu_vram_bad_pages`, '0x00000001 : 0x00001000 : R\n'.repeat(5_000));
    const report = reportOf(machine.collect(), FIRST);
    expect(Object.keys(seriesOf(report)).filter((name) => name.startsWith('device_amdgpu_bad_pages'))).toEqual([]);
    expect(report.findings.filter(({ type }) => type.startsWith('BadPages')).map(({ status }) => status)).toEqual(['unknown', 'unknown']);
  });
});

describe('the list of cards', () => {
  it('follows cards that leave and come, by their addresses', () => {
    machine = simulatedMachine(2);
    expect(machine.collect().reports.map(({ device }) => device.id)).toEqual([FIRST, SECOND]);
    for (const node of ['card0', 'renderD128']) machine.remove(`sys/class/drm/${node}`);
    expect(machine.collect().reports.map(({ device }) => device.id)).toEqual([SECOND]);
    for (const node of ['card7', 'renderD140'])
      machine.link(`sys/class/drm/${node}`, `../../devices/pci0020:00/0020:00:01.0/${FIRST}/drm/${node}`);
    const [first] = machine.collect().reports;
    expect([first?.device.id, first?.device.characterDevices?.includes('/dev/dri/card7')]).toEqual([FIRST, true]);
  });

  it('finds cards with two digits in their name', () => {
    machine = simulatedMachine(12);
    expect(machine.collect().reports.length).toBe(12);
  });

  it('is absent without the class, and complete without a card of the drivers', () => {
    machine = emptyMachine();
    expect(machine.collect()).toEqual({ reports: [], problems: [], listing: 'absent' });
    machine.link('sys/class/drm/card0', '../../devices/pci0000:00/0000:00:02.0/drm/card0');
    expect(machine.collect()).toEqual({ reports: [], problems: [], listing: 'complete' });
  });

  it('is partial, with a problem, when a card has no address', () => {
    machine = emptyMachine();
    machine.write('sys/class/drm/card0/device/uevent', 'DRIVER=amdgpu\n');
    const { listing, problems } = machine.collect();
    expect([listing, problems.map(({ code }) => code)]).toEqual(['partial', ['address-unknown']]);
  });

  it('says that KFD lost a card that it had, and not that a card never had a node', () => {
    machine = simulatedMachine(2);
    const level = (address: string): unknown =>
      reportOf(machine.collect(), address).findings.find(({ type }) => type === 'KfdMissing')?.level;
    expect([level(FIRST), level(SECOND)]).toEqual([true, true]);
    machine.remove('sys/class/kfd/kfd/topology/nodes/1');
    machine.write('sys/class/kfd/kfd/topology/generation_id', '2\n');
    expect([level(FIRST), level(SECOND)]).toEqual([false, true]);
  });
});

describe('a topology of which one node cannot be read', () => {
  const isNode = (path: string): boolean => path.endsWith('topology/nodes/1/properties');
  const MODE = `${directoryOf(FIRST)}/current_compute_partition`;
  const look = () => {
    const { listing, problems, reports } = machine.collect();
    const types = new Set(reports.flatMap(({ read }) => read?.findings ?? []).map(({ type }) => type));
    return [listing, problems.map(({ code }) => code), types.has('KfdMissing'), types.has('PartitionMissing')];
  };
  const nodesOf = (id: string) => reportOf(machine.collect(), id).device.characterDevices;

  it.each(['EPERM', 'EIO'])('with %s is unknown, says so, and is read again at the next time', (error) => {
    let isRefusing = true;
    machine = filteredMachine((path) => (isRefusing && isNode(path) ? error : undefined));
    machine.write(MODE, 'SPX\n');
    expect(look()).toEqual(['complete', ['topology-unreadable'], false, false]);
    expect(machine.collect().problems[0]?.message).toContain(`nodes/1/properties fails with ${error}`);
    expect(nodesOf(FIRST)).toEqual(['/dev/kfd', '/dev/dri/card0', '/dev/dri/renderD128']);
    isRefusing = false;
    expect(look()).toEqual(['complete', [], true, true]);
  });

  it('may hide partitions of a card in such a mode, which is not offered as a whole', () => {
    machine = filteredMachine((path) => (isNode(path) ? 'EPERM' : undefined));
    machine.write(MODE, 'DPX\n');
    expect(look()).toEqual(['partial', ['topology-unreadable'], false, false]);
    expect(nodesOf(FIRST)).toEqual([]);
    expect(nodesOf(SECOND)).toEqual(['/dev/kfd', '/dev/dri/card1', '/dev/dri/renderD129']);
  });

  it('has no node where the file is gone', () => {
    machine = filteredMachine((path) => (isNode(path) ? 'ENOENT' : undefined));
    expect(look()).toEqual(['complete', [], true, false]);
  });
});

describe('presence', () => {
  const isPresent = (root: string): boolean | undefined =>
    family.isPresent?.(createHost({ sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` }, systemClock));

  it('needs a card with a driver of the family, and opens no file', () => {
    machine = simulatedMachine(1);
    expect(isPresent(machine.root)).toBe(true);
    machine.end();
    machine = emptyMachine();
    expect(isPresent(machine.root)).toBe(false);
    machine.link('sys/class/drm/card0', '../../devices/pci0000:00/0000:00:02.0/drm/card0');
    machine.link('sys/devices/pci0000:00/0000:00:02.0/drm/card0/device', '../..');
    machine.link('sys/devices/pci0000:00/0000:00:02.0/driver', '../../../bus/pci/drivers/i915');
    expect(isPresent(machine.root)).toBe(false);
  });
});

describe('the simulated node', () => {
  it('has no card unless the scenario counts some', () => {
    machine = emptyMachine();
    const none = simulate({ counts: { nvidia: 8, intelgpu: 8 }, elapsedMs: 0 });
    expect(none).toEqual({ files: {}, links: {}, resources: [] });
  });

  it('has a process and work only on the cards that a pod holds', () => {
    machine = emptyMachine();
    const holder = { podUid: '1f0c2a4e-7b3d-4c59-9a86-0d5e7f1b2c3d', program: 'train', isIdle: false };
    const use = { [FIRST]: { activeMs: 1_000, holder } };
    const node = simulate({ counts: { amdgpu: 2 }, elapsedMs: 0, use });
    for (const [path, text] of Object.entries(node.files)) machine.write(path, text);
    for (const [path, target] of Object.entries(node.links)) machine.link(path, target);
    const { reports } = machine.collect();
    expect(reports.map(({ read }) => read?.processes?.map(({ name, podUid }) => [name, podUid]))).toEqual([[['train', holder.podUid]], []]);
    const busy = reports.map(
      (report) => seriesOf(reportOf({ reports } as never, report.device.id))['device_utilization_ratio{engine=gpu}'],
    );
    expect(busy).toEqual([0.5, 0]);
  });

  it('has cards that are healthy but for those with a fault', () => {
    machine = simulatedMachine(3);
    const { reports, problems } = machine.collect();
    expect(problems).toEqual([]);
    expect(reports.map((report) => holding(reportOf({ reports } as never, report.device.id)))).toEqual([{}, {}, {}]);
    const faults = [
      { name: 'hot', device: SECOND, fromMs: 0 },
      { name: 'ras', device: FIRST, fromMs: 0 },
    ];
    const faulty = simulate({ counts: { amdgpu: 3 }, elapsedMs: 0, faults });
    for (const [path, text] of Object.entries(faulty.files)) machine.write(path, text);
    const after = machine.collect();
    expect(holding(reportOf(after, SECOND))).toEqual({ 'OverTemperature/junction': 'AtCritical' });
    expect(faulty.files[`sys/devices/pci0020:00/0020:00:01.0/${FIRST}/ras/umc_err_count`]).toContain('ue: 1');
    expect(existsSync(`${machine.root}/dev/kfd`)).toBe(true);
  });
});

describe('a card whose files of error handling are gone since before the first read', () => {
  const unread = (): readonly string[] =>
    reportOf(machine.collect(), FIRST)
      .findings.filter(({ status, reason }) => status === 'unknown' && reason !== 'LogUnread')
      .map(({ type, instance }) => (instance === undefined ? type : `${type}/${instance}`));
  const properties = 'sys/class/kfd/kfd/topology/nodes/1/properties';
  const all = ['RasFatal', 'RasUncorrectable/umc', 'RasUncorrectable/gfx', 'BadPagesPending', 'BadPagesFailed'];

  it('has unread conditions, because KFD says that the driver handles its errors', () => {
    machine = simulatedMachine(1);
    machine.remove(`${directoryOf(FIRST)}/ras`);
    expect(unread()).toEqual(all);
  });

  it('has one for each block without counts, also when other files are there', () => {
    machine = simulatedMachine(1);
    machine.remove(`${directoryOf(FIRST)}/ras/umc_err_count`);
    expect(unread()).toEqual(['RasUncorrectable/umc']);
  });

  it('has them by its model where KFD does not list it', () => {
    machine = simulatedMachine(1);
    machine.remove(`${directoryOf(FIRST)}/ras`);
    machine.remove('sys/class/kfd');
    expect(unread()).toEqual(all);
    machine.end();
    machine = simulatedMachine(1);
    machine.remove(`${directoryOf(FIRST)}/ras`);
    machine.remove('sys/class/kfd');
    machine.write(`${directoryOf(FIRST)}/device`, '0x744c\n');
    expect(unread()).toEqual([]);
  });

  it('has none where KFD says that the driver handles none', () => {
    machine = simulatedMachine(1);
    const text = readFileSync(`${machine.root}/${properties}`, 'utf8');
    machine.write(properties, text.replace(/^capability .*$/m, 'capability 709075584'));
    machine.remove(`${directoryOf(FIRST)}/ras`);
    expect(unread()).toEqual([]);
  });
});
