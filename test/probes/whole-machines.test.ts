import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { areThere, skipped, unpackMachine } from '../support/captures.ts';
import { buildMachine, type MachineFile } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';

interface Machine {
  /** What each family finds. The other families must find nothing and have no problem. */
  readonly found: Readonly<Record<string, { readonly devices: readonly string[]; readonly problems?: readonly string[] }>>;
  /** Series of a device, as `family/device metric label=value`. */
  readonly series: Readonly<Record<string, number>>;
}

const ENGINES = ['1b', '1c', '1d', '1e', '3d', '3f', '40', '41'].map((bus) => `0000:${bus}:00.0`);

const MACHINES: Readonly<Record<string, Machine>> = {
  '32em64t-2n8c+dax+nvme+mic+dimms': {
    // The class lists scif0 of the Xeon Phi, whose directory is not in the archive.
    found: { infiniband: { devices: ['mlx4_0'], problems: ['device-vanished scif0'] } },
    series: {
      'infiniband/mlx4_0 device_link_up port=1': 1,
      'infiniband/mlx4_0 device_link_speed_bytes_per_second port=1': 7e9,
      'infiniband/mlx4_0 device_received_bytes_total port=1': 4 * 5_550_796,
    },
  },
  '32intel64-2p8co2t+8ve': {
    found: { ve: { devices: ENGINES } },
    series: Object.fromEntries(
      ENGINES.flatMap((address) => [
        // 50331648 KiB, as hwloc prints it.
        [`ve/${address} device_memory_total_bytes`, 50_331_648 * 1_024],
        [`ve/${address} device_ve_cores`, 8],
        [`ve/${address} device_pcie_link_width_lanes`, 16],
        [`ve/${address} device_pcie_link_generation`, 3],
      ]),
    ),
  },
  nvidiagpunumanodes: { found: {}, series: {} },
};

function seriesOf(family: string, { device, read }: DeviceReport): readonly (readonly [string, number])[] {
  return [...(read?.readings ?? [])].map(({ metric, labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([name, text]) => ` ${name}=${text}`);
    return [`${family}/${device.id} ${metric}${pairs.join('')}`, Number(value)];
  });
}

/** Runs each family that is on by default with its default options, as an agent on such a machine does. */
async function expectFound(root: string, { found, series }: Machine): Promise<void> {
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), kmsg: '' }, systemClock);
  const reported: Record<string, object> = {};
  const values = new Map<string, number>();
  for (const [name, load] of Object.entries(familyLoaders)) {
    const family = await load();
    if (family.isOffByDefault === true || family.isPresent?.(host) === false) continue;
    const probe = family.createProbe(host, probeOptions(family, {}));
    const { reports, problems } = await probe.collect();
    await probe.close?.();
    for (const report of reports) for (const [key, value] of seriesOf(name, report)) values.set(key, value);
    if (reports.length + problems.length === 0) continue;
    const codes = problems.map(({ code, device }) => [code, device].join(' ').trim());
    reported[name] = { devices: reports.map(({ device }) => device.id).sort(), ...(codes.length === 0 ? {} : { problems: codes }) };
  }
  expect(reported).toEqual(found);
  expect(Object.fromEntries(Object.keys(series).map((key) => [key, values.get(key)]))).toEqual(series);
}

describe.skipIf(!areThere).each(Object.entries(MACHINES))(`the captured machine %s${skipped}`, (archive, machine) => {
  it('has the devices of the families that know them, and breaks no other family', async () => {
    const root = mkdtempSync(join(tmpdir(), 'device-agent-whole-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    unpackMachine(archive, root);
    await expectFound(root, machine);
  });
});

const inClass = (address: string, path: string): string => `../../devices/pci0000:80/${address}/${path}`;
const engine = (address: string, n: number): Readonly<Record<string, string>> => ({
  [`sys/bus/pci/devices/${address}/vendor`]: '0x1bcf\n',
  [`sys/bus/pci/devices/${address}/device`]: '0x001c\n',
  [`sys/bus/pci/devices/${address}/class`]: '0x0b4000\n',
  [`sys/bus/pci/devices/${address}/ve/ve${n}/memory_size`]: '24\n',
  [`sys/bus/pci/devices/${address}/ve/ve${n}/num_of_core`]: '8\n',
  [`sys/bus/pci/devices/${address}/ve/ve${n}/ve_state`]: '1\n',
});
const HCA = 'sys/devices/pci0000:80/0000:82:00.0/infiniband/mlx4_0';

/** Small machines of several families, by what is odd about them. */
const SMALL: Readonly<Record<string, Machine & Pick<MachineFile, 'files' | 'links' | 'directories'>>> = {
  'with an adapter, a class entry of another kind of hardware that points nowhere, and engines': {
    files: {
      ...engine('0000:a1:00.0', 0),
      ...engine('0000:a2:00.0', 1),
      'sys/devices/pci0000:80/0000:82:00.0/vendor': '0x15b3\n',
      [`${HCA}/node_guid`]: '0002:c903:0011:2230\n',
      [`${HCA}/ports/1/state`]: '4: ACTIVE\n',
      [`${HCA}/ports/1/phys_state`]: '5: LinkUp\n',
      [`${HCA}/ports/1/rate`]: '56 Gb/sec (4X FDR)\n',
      [`${HCA}/ports/1/counters/port_rcv_data`]: '1250\n',
    },
    links: {
      'sys/class/infiniband/mlx4_0': inClass('0000:82:00.0', 'infiniband/mlx4_0'),
      'sys/class/infiniband/scif0': '../../devices/virtual/infiniband/scif0',
      [`${HCA}/device`]: '../..',
      'sys/bus/pci/devices/0000:82:00.0': '../../../devices/pci0000:80/0000:82:00.0',
      ...Object.fromEntries(
        ['0000:a1:00.0', '0000:a2:00.0'].map((address) => [`sys/bus/pci/devices/${address}/driver`, '../../drivers/ve_drv']),
      ),
    },
    found: {
      infiniband: { devices: ['mlx4_0'], problems: ['device-vanished scif0'] },
      ve: { devices: ['0000:a1:00.0', '0000:a2:00.0'] },
    },
    series: {
      'infiniband/mlx4_0 device_link_up port=1': 1,
      'infiniband/mlx4_0 device_link_speed_bytes_per_second port=1': 7e9,
      'infiniband/mlx4_0 device_received_bytes_total port=1': 4 * 1_250,
      've/0000:a1:00.0 device_memory_total_bytes': 24 * 2 ** 30,
      've/0000:a2:00.0 device_ve_cores': 8,
    },
  },
  'with GPUs as memory nodes, functions without ids, and no program or library of a driver': {
    files: {
      'sys/devices/system/node/node253/meminfo': 'Node 253 MemTotal: 16515072 kB\n',
      'sys/devices/pci0004:00/0004:04:00.0/local_cpus': 'ff\n',
    },
    links: { 'sys/bus/pci/devices/0004:04:00.0': '../../../devices/pci0004:00/0004:04:00.0' },
    found: {},
    series: {},
  },
  'without any bus or class': { directories: ['sys', 'proc', 'dev'], found: {}, series: {} },
};

describe.each(Object.entries(SMALL))('a machine %s', (about, { found, series, ...tree }) => {
  it('has the devices of the families that know them, and breaks no other family', async () => {
    const { root, remove } = buildMachine({ about, ...tree });
    onTestFinished(remove);
    await expectFound(root, { found, series });
  });
});
