import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeSmartLog, LOG_FIELDS, parseSmartJson, type SmartLog } from '../../../src/probes/nvme/smart-log.ts';
import { areThere, CAPTURES, restoreLinks, skipped } from '../../support/captures.ts';
import { devicesOf, emptyMachine, type ProbedMachine, reportOf, seriesOf } from './harness.ts';

let machine: ProbedMachine;
afterEach(() => machine.end());

/** `parts` are directories below `/sys`. */
function place(capture: string, parts: readonly string[]): void {
  machine = emptyMachine();
  for (const part of parts) cpSync(join(CAPTURES, capture, 'sys', part), join(machine.root, 'sys', part), { recursive: true });
  restoreLinks(join(machine.root, 'sys'));
}

describe.skipIf(!areThere)(`the captured machine with multipath${skipped}`, () => {
  const TREE = 'nvme/samsung-pm1743-pm1735a-multipath';
  const HEAD = 'eui.36525430529000570025384500000001';
  const ALONE = 'eui.374446305770006300253847000002e1';

  it('has the controllers, namespaces and paths that nvme-cli shows', () => {
    place(TREE, ['class', 'devices']);
    const collection = machine.collect();
    expect([collection.listing, collection.problems]).toEqual(['complete', []]);
    expect(devicesOf(collection).map(({ kind, id, parent }) => [kind, id, parent])).toEqual([
      ['controller', '0214:90:00.0', undefined],
      ['controller', '052e:78:00.0', undefined],
      ['controller', '058e:78:00.0', undefined],
      ['namespace', ALONE, '0214:90:00.0'],
      ['namespace', HEAD, '052e:78:00.0'],
    ]);
    const expected = readFileSync(join(CAPTURES, TREE, 'expected-tree.out'), 'utf8');
    const controllers = [...expected.matchAll(/ctrl (nvme\d+) transport=(\w+) traddr=(\S+)/g)].map(([, name, transport, id]) => [
      name,
      transport,
      id,
    ]);
    const told = devicesOf(collection).flatMap(({ kind, id, aliases }) => {
      const { readings } = reportOf(collection, id);
      const transport = readings.find(({ metric }) => metric === 'device_nvme_info')?.labels?.transport;
      return kind === 'controller' ? [[aliases[0], transport, id]] : [];
    });
    expect(told).toEqual(controllers);
    expect(controllers.length).toBe(3);
  });

  it('has the names without padding', () => {
    place(TREE, ['class', 'devices']);
    const [first, second] = devicesOf(machine.collect());
    expect([first?.serial, second?.model, second?.serial, second?.firmware, second?.numaNode]).toEqual([
      'S7DFNG0W700063',
      '3.2TB NVMe Gen4 U.2 SSD III',
      'S6RTNE0R900057',
      'REV.SN66',
      undefined,
    ]);
  });

  it('counts operations on the head alone', () => {
    place(TREE, ['class', 'devices']);
    const collection = machine.collect();
    expect(seriesOf(reportOf(collection, HEAD))).toMatchObject({
      device_nvme_paths: 2,
      device_nvme_usable_paths: 2,
      device_nvme_size_bytes: 11_233_968 * 512,
      device_nvme_read_bytes_total: 5_728 * 512,
      'device_nvme_operations_total{operation=read}': 49,
      device_nvme_read_only: 0,
    });
    expect(seriesOf(reportOf(collection, ALONE))).toMatchObject({
      device_nvme_size_bytes: 978_143_920 * 512,
      device_nvme_read_bytes_total: 5_856 * 512,
      'device_nvme_operation_seconds_total{operation=read}': 0.004,
    });
    expect(Object.keys(seriesOf(reportOf(collection, ALONE)))).not.toContain('device_nvme_paths');
  });
});

describe.skipIf(!areThere)(`the captured laptop drive${skipped}`, () => {
  it('has the figures of its files', () => {
    place('sysfs', ['devices/pci0000:00/0000:00:02.1', 'bus/pci/devices', 'class/nvme']);
    // The class of this capture is made up of another drive.
    machine.remove('sys/class/nvme');
    machine.link('sys/class/nvme/nvme0', '../../devices/pci0000:00/0000:00:02.1/0000:01:00.0/nvme/nvme0');
    const collection = machine.collect();
    expect(collection.problems).toEqual([]);
    expect(devicesOf(collection).map(({ id, model, firmware }) => [id, model, firmware])).toEqual([
      ['0000:01:00.0', 'CT2000P3SSD8', 'P9CR30A'],
      ['0000:01:00.0-n1', 'CT2000P3SSD8', 'P9CR30A'],
    ]);
    const controller = seriesOf(reportOf(collection, '0000:01:00.0'));
    expect(controller).toMatchObject({
      'device_nvme_state{state=live}': 1,
      device_nvme_queues: 9,
      'device_temperature_celsius{sensor=composite}': 43.85,
      'device_temperature_celsius{sensor=sensor_1}': 43.85,
      'device_temperature_celsius{sensor=sensor_2}': 45.85,
      'device_temperature_celsius{sensor=sensor_8}': 43.85,
      'device_temperature_limit_celsius{limit=crit,sensor=composite}': 94.85,
      device_pcie_link_width_lanes: 4,
      device_pcie_link_generation: 3,
    });
    // Sensors have no limit: the drive says 65535 K, in files that send a command.
    expect(Object.keys(controller).filter((name) => name.startsWith('device_temperature_limit'))).toHaveLength(1);
    expect(Object.entries(controller).filter(([name, value]) => name.startsWith('device_pcie_errors') && value !== 0)).toEqual([]);
    expect(seriesOf(reportOf(collection, '0000:01:00.0-n1'))).toMatchObject({
      device_nvme_size_bytes: 3_907_029_168 * 512,
      device_nvme_read_bytes_total: 4_202_091 * 512,
      device_nvme_written_bytes_total: 2_302_530 * 512,
      device_nvme_discarded_bytes_total: 5_751_632 * 512,
      'device_nvme_operations_total{operation=flush}': 3_461,
      'device_nvme_operation_seconds_total{operation=flush}': 6.703,
      device_nvme_busy_seconds_total: 20.551,
      device_nvme_in_flight_operations: 0,
    });
  });

  it('has no stable name in the class directory that is made up', () => {
    place('sysfs', ['class/nvme']);
    const { listing, reports, problems } = machine.collect();
    expect([listing, reports, problems.map(({ code }) => code)]).toEqual(['partial', [], ['identity-unknown']]);
  });
});

describe.skipIf(!areThere)(`the captured PCI function of a drive${skipped}`, () => {
  it('is not degraded, because the port above it has the same speed', () => {
    machine = emptyMachine();
    const root = 'devices/pci0000:00/0000:00:02.1/0000:01:00.0';
    cpSync(join(CAPTURES, 'pci/node_exporter/sys', root), join(machine.root, 'sys', root), { recursive: true });
    restoreLinks(machine.root);
    machine.write('sys/devices/pci0000:00/0000:00:02.1/max_link_speed', '8.0 GT/s PCIe\n');
    machine.write(`sys/${root}/nvme/nvme0/state`, 'live\n');
    machine.write(`sys/${root}/nvme/nvme0/address`, '0000:01:00.0\n');
    machine.link(`sys/${root}/nvme/nvme0/device`, '../..');
    machine.link('sys/bus/pci/devices/0000:01:00.0', `../../../${root}`);
    machine.link('sys/class/nvme/nvme0', `../../${root}/nvme/nvme0`);
    const report = reportOf(machine.collect(), '0000:01:00.0');
    expect(seriesOf(report)).toMatchObject({ device_pcie_link_generation: 3, device_pcie_link_max_generation: 3 });
    expect(report.findings.filter(({ type }) => type === 'PcieLinkDegraded').map(({ status }) => status)).toEqual([false, false]);
    expect(report.device).toMatchObject({ pciVendor: '0xc0a9', pciDevice: '0x540a' });
  });
});

describe.skipIf(!areThere)(`captured SMART logs${skipped}`, () => {
  const STYLES = ['', '-float', '-string'];

  /** The log as a drive sends it. */
  function encoded(log: SmartLog): Buffer {
    const bytes = Buffer.alloc(512);
    for (const { field, offset, bytes: width } of LOG_FIELDS)
      for (let at = 0; at < width; at += 1) bytes[offset + at] = Number(((log[field] ?? 0n) >> BigInt(8 * at)) & 0xffn);
    return bytes;
  }

  it.each(STYLES)('of nvme-cli%s have the figures that their project expects', (style) => {
    machine = emptyMachine({ 'smart-directory': '{root}/smart' });
    machine.write('sys/class/nvme/nvme0/state', 'live\n');
    machine.write('sys/class/nvme/nvme0/address', '0000:01:00.0\n');
    machine.write('sys/class/nvme/nvme0/serial', 'XXX00YYY\n');
    const text = readFileSync(join(CAPTURES, `nvme/nvme-cli/v2.3-nvme-smart-log${style}.json`), 'utf8');
    mkdirSync(dirname(join(machine.root, 'smart/x')), { recursive: true });
    machine.write('smart/XXX00YYY.json', text);
    const collection = machine.collect();
    expect(collection.problems).toEqual([]);
    expect(seriesOf(reportOf(collection, '0000:01:00.0'))).toMatchObject({
      device_nvme_available_spare_ratio: 1,
      device_nvme_available_spare_threshold_ratio: 0.05,
      device_nvme_used_life_ratio: 0.02,
      device_nvme_lifetime_read_bytes_total: 5_068_041_216_000,
      device_nvme_lifetime_written_bytes_total: 69_712_734_208_000,
      'device_nvme_lifetime_commands_total{command=read}': 313_528_805,
      'device_nvme_lifetime_commands_total{command=write}': 1_928_062_610,
      device_nvme_lifetime_busy_seconds_total: 497_040,
      device_nvme_powered_seconds_total: 17_906_400,
      device_nvme_power_cycles_total: 64,
      device_nvme_unsafe_shutdowns_total: 39,
      'device_errors_total{kind=error_log}': 110,
      'device_errors_total{kind=media}': 0,
      // 310 K. Netdata cuts this to 36; the kernel's monitor gives this value, too.
      'device_temperature_celsius{sensor=composite}': 36.85,
      'device_nvme_critical_warning{warning=spare}': 0,
    });
  });

  it('give the same values as JSON and as bytes of the drive', () => {
    machine = emptyMachine();
    const log = parseSmartJson(readFileSync(join(CAPTURES, 'nvme/nvme-cli/v2.3-nvme-smart-log.json'), 'utf8')) as SmartLog;
    expect(Object.keys(log).length).toBe(21);
    expect(decodeSmartLog(encoded(log))).toEqual(log);
  });
});
