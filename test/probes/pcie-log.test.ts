import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { parseKmsgRecord } from '../../src/host/kernel-log/record.ts';
import { isPciAddress } from '../../src/host/pci/pci.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { knownLine } from '../../src/probes/kit/log-row.ts';
import { RowLog } from '../../src/probes/kit/log-rows.ts';
import { pcieLogConditions, pcieLogRows } from '../../src/probes/kit/pcie/log.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';

const clock: Clock = { now: () => Date.parse('2026-01-01T00:00:00Z'), monotonic: () => 0, after: () => () => {} };

/** A report as the kernel prints it for firmware: ovro-lwa/lwa-issues#117 (an NVMe drive), and a mail about ice (a root port). */
const report = (number: number, at: string, severity = 'recoverable', port = '0, PCIe end point'): readonly string[] =>
  [
    'Hardware error from APEI Generic Hardware Error Source: 1',
    `event severity: ${severity}`,
    ` Error 0, type: ${severity}`,
    ' fru_text: PcieError',
    '  section_type: PCIe error',
    `  port_type: ${port}`,
    '  version: 3.0',
    '  command: 0x0546, status: 0xc110',
    `  device_id: ${at}`,
    '  slot: 9',
    '  secondary_bus: 0x00',
    '  vendor_id: 0x144d, device_id: 0xa808',
    '  class_code: 010802',
  ].map((line) => `{${number}}[Hardware Error]: ${line}`);

/** rwth-i6/returnn#1500, minisforum-docs/MS-02-Ultra#10 and a solution of Red Hat, with other addresses. */
const portLines = (port: string): readonly string[] => [
  `pcieport ${port}: AER: Multiple Uncorrected (Fatal) error received: ${port}`,
  `pcieport ${port}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)`,
  `pcieport ${port}:   device [8086:6f08] error status/mask=00004020/00000000`,
  `pcieport ${port}:    [ 5] SDES                  `,
  `pcieport ${port}: AER: Root Port link has been reset (0)`,
  `pcieport ${port}: AER: device recovery failed`,
  `pcieport ${port}: AER: Correctable error message received from ${port}`,
  `pcieport ${port}: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)`,
];

/** Records of the kernel, with the device where a line begins with one. */
function recordsOf(lines: readonly string[], priority = 3): string {
  return lines
    .map((line, at) => {
      const named = /^\S+ ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): /.exec(line)?.[1];
      return `${priority},${at + 2},${1_000_000 + at},-;${line}\n${named === undefined ? '' : ` SUBSYSTEM=pci\n DEVICE=+pci:${named}\n`}`;
    })
    .join('');
}

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0)) end();
});

async function collect(family: DeviceFamily, path: string, log: string): Promise<Collection> {
  const machine = buildMachine(readMachine(path));
  ended.push(() => machine.remove());
  const { root } = machine;
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
  const file = join(root, 'dev/kmsg');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `6,1,100,-;Linux version 7.0\n${log}`);
  const probe = family.createProbe(host, probeOptions(family, machine.options) as never);
  try {
    return await probe.collect();
  } finally {
    await probe.close?.();
  }
}

const told = ({ outOfBand, faults = [] }: DeviceReport): readonly string[] => [
  ...(outOfBand?.findings ?? []).flatMap(({ type, count, message }) =>
    pcieLogConditions.some((one) => one.type === type) ? [`${type} ${count} ${message}`] : [],
  ),
  ...faults.filter(({ type }) => type === 'PcieError').map(({ type, code, count, severity }) => `${type} ${code} ${count} ${severity}`),
];

const machinesOf = (family: string): readonly string[] =>
  readdirSync(join('test/probes', family))
    .sort()
    .map((name) => join('test/probes', family, name, 'machine.yaml'))
    .filter((path) => existsSync(path));

describe.each(Object.keys(familyLoaders))('%s', (name) => {
  it('takes reports of the firmware for their function, and lines of a port for all below it', async () => {
    const family = await (familyLoaders[name] as () => Promise<DeviceFamily>)();
    let [functions, below] = [0, 0];
    for (const path of machinesOf(name)) {
      const { reports } = await collect(family, path, '');
      const device = reports.find(({ device: { pciAddress } }) => pciAddress !== undefined)?.device;
      if (device?.pciAddress === undefined) continue;
      const at = device.pciAddress;
      const port = (device.pciPath ?? '').split('/').slice(0, -1).filter(isPciAddress).at(-1);
      const lines = [...report(1, at), ...report(2, 'ffff:ff:1f.7', 'fatal'), ...(port === undefined ? [] : portLines(port))];
      const { reports: after } = await collect(family, path, recordsOf(lines));
      for (const one of after) {
        const { pciAddress, pciPath = '', physicalFunction } = one.device;
        const own = pciAddress === at ? 1 : 0;
        const isBelow = port !== undefined && pciPath.split('/').slice(0, -1).includes(port);
        const where = isBelow ? `; of port ${port} above` : '';
        if (pciAddress === undefined) expect(told(one)).toEqual([]);
        else {
          expect(told(one), `${path} ${one.device.id}`).toEqual([
            `FirmwarePcieErrors ${own} firmware pcie error: ${own}`,
            `PcieCorrectedErrors ${isBelow ? 1 : 0} firmware pcie corrected, firmware port corrected, pcie port corrected: ${isBelow ? `1${where}: 1` : 0}`,
            `PciePortErrors ${isBelow ? 2 : 0} firmware port error, pcie port error: ${isBelow ? `2${where}: 2` : 0}`,
            'FunctionResetFailed 0 function reset failed: 0',
            ...(own === 1 ? ['PcieError firmware-pcie-error 1 degraded'] : []),
          ]);
          functions += own;
          below += isBelow ? 1 : 0;
          if (physicalFunction === undefined && one.device.parent === undefined)
            expect(one.outOfBand?.readings).toContainEqual({
              metric: 'device_kernel_log_events_total',
              labels: { event: 'firmware-pcie-error' },
              value: own,
            });
        }
      }
      if (functions > 0 && below > 0) break;
    }
    expect(functions).toBeGreaterThan(0);
  });
});

describe('the rows of PCIe', () => {
  const CARD = '0000:5e:00.0';
  const PORT = '0000:5d:00.0';
  const device = { family: 'acme', id: 'a', kind: 'card', aliases: [], pciAddress: CARD, pciPath: `pci0000:5d/${PORT}/${CARD}` };

  function toldAfter(lines: readonly string[], priority = 3, files: Readonly<Record<string, string>> = {}): readonly string[] {
    const machine = buildMachine({
      files: { ...files, 'dev/kmsg': `6,1,100,-;Linux version 7.0\n${recordsOf(lines, priority)}` },
    } as never);
    ended.push(() => machine.remove());
    const { root } = machine;
    const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
    const log = new RowLog(host, pcieLogRows, pcieLogConditions);
    ended.push(() => log.close());
    const [one] = log.withLogs({ reports: [{ device }], problems: [], listing: 'complete' }).reports;
    return told(one as DeviceReport)
      .filter((text) => !/ 0 /.test(text))
      .map((text) => text.split(':')[0] as string);
  }

  it.each<[string, readonly string[], readonly string[]]>([
    [
      'a corrected error',
      report(1, CARD, 'corrected'),
      ['PcieCorrectedErrors 1 firmware pcie corrected, firmware port corrected, pcie port corrected'],
    ],
    [
      'an error of a port that the firmware took',
      report(3, PORT, 'recoverable', '4, root port'),
      ['PciePortErrors 1 firmware port error, pcie port error'],
    ],
    ['an error of a port above another port', report(3, '0000:5c:00.0', 'fatal', '6, downstream switch port'), []],
    [
      'reports of two CPUs, line by line in turn',
      report(1, CARD).flatMap((line, n) => [line, report(2, PORT, 'corrected', '4, root port')[n] as string]),
      [
        'FirmwarePcieErrors 1 firmware pcie error',
        'PcieCorrectedErrors 1 firmware pcie corrected, firmware port corrected, pcie port corrected',
        'PcieError firmware-pcie-error 1 degraded',
      ],
    ],
    ['a report whose first lines are lost', report(1, CARD).slice(4), []],
    ['a report of the boot before', report(1, CARD).map((line) => line.replace('{1}', '')), []],
    ['an event for information', report(1, CARD, 'info'), []],
    [
      'a link that was cut off',
      [`pcieport ${PORT}: DPC: containment event, status:0x1f01 source:0x0000`],
      ['PciePortErrors 1 firmware port error, pcie port error'],
    ],
    ...['vfio-pci', 'pci', 'amdgpu'].map((driver): [string, readonly string[], readonly string[]] => [
      `a reset of the function without an end, as printed for ${driver}`,
      [`${driver} ${CARD}: not ready 1023ms after FLR; waiting`, `${driver} ${CARD}: not ready 65535ms after FLR; giving up`],
      ['FunctionResetFailed 1 function reset failed'],
    ]),
    [
      'a power state that the function does not leave',
      [`vfio-pci ${CARD}: not ready 65535ms after PM D3hot->D0; giving up`],
      ['FunctionResetFailed 1 function reset failed'],
    ],
    [
      'a reset that took long',
      [`vfio-pci ${CARD}: not ready 1023ms after bus reset; waiting`, `vfio-pci ${CARD}: ready 2047ms after bus reset`],
      [],
    ],
    ['a recovery', [`pcieport ${PORT}: AER: device recovery successful`], []],
    [
      'an error of the function that the kernel counts',
      [`nvme ${CARD}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)`],
      [],
    ],
  ])('%s', (_, lines, expected) => {
    expect(toldAfter(lines)).toEqual(expected);
  });

  it('believe neither a program that writes to /dev/kmsg nor a line for another device', () => {
    expect(toldAfter([...report(1, CARD), ...portLines(PORT)], 11)).toEqual([]);
    expect(toldAfter(portLines(PORT).map((line) => `x${line}`))).toEqual([]);
  });

  it('believe no line without a device while a driver prints what processes say', () => {
    const neuron = { 'sys/module/neuron/version': '2.19\n' };
    expect(toldAfter(report(1, CARD), 3, neuron)).toEqual([]);
    expect(toldAfter(portLines(PORT).slice(0, 2), 3, neuron)).toEqual(['PciePortErrors 1 firmware port error, pcie port error']);
  });

  it('keep the lines of a report in a capture with replaced names', () => {
    const kept = report(1, CARD).filter((line) => {
      const record = parseKmsgRecord(`3,1,1,-;${line}\n`);
      return record !== undefined && knownLine(pcieLogRows)(record) !== undefined;
    });
    expect(kept.map((line) => line.replace(/^\S+ \S+ +/, ''))).toEqual([
      'Error 0, type: recoverable',
      'section_type: PCIe error',
      'port_type: 0, PCIe end point',
      `device_id: ${CARD}`,
    ]);
  });
});
