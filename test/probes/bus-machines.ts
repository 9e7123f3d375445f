import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { hardwareOf } from '../support/hardware.ts';
import { declaredFamily } from './declared/support.ts';

/** Files and links of a machine, and two functions of one model in it, each with its driver. */
export interface BusMachine {
  readonly files: Readonly<Record<string, string>>;
  readonly links: Readonly<Record<string, string>>;
  readonly options?: Readonly<Record<string, string>>;
  readonly addresses: readonly [string, string];
  readonly driver: string;
}

const nodesBelow = (count: number): string => `0000:${(0x40 + count).toString(16)}:00.0`;
const [A, B] = [nodesBelow(0), nodesBelow(1)];
const PCI = { numa_node: '0', power_state: 'D0', current_link_width: '16', max_link_width: '16', 'power/runtime_status': 'active' };

/** Two functions; `made`: what the driver makes below the directory of a function, by its number. */
function machineOf(
  { driver, ...ids }: { readonly vendor: string; readonly device: string; readonly class: string; readonly driver: string },
  made: (index: number) => { readonly files?: Readonly<Record<string, string>>; readonly links?: Readonly<Record<string, string>> },
): BusMachine {
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (const [index, address] of [A, B].entries()) {
    const directory = `sys/devices/pci0000:00/${address}`;
    const own = made(index);
    for (const [name, text] of Object.entries({ ...PCI, ...ids })) files[`${directory}/${name}`] = `${text}\n`;
    for (const [name, text] of Object.entries(own.files ?? {})) files[name.startsWith('dev/') ? name : `${directory}/${name}`] = text;
    for (const [path, below] of Object.entries(own.links ?? {})) links[path] = `../../devices/pci0000:00/${address}/${below}`;
    links[`sys/bus/pci/devices/${address}`] = `../../../devices/pci0000:00/${address}`;
    links[`${directory}/driver`] = `../../../bus/pci/drivers/${driver}`;
    links[`${directory}/iommu_group`] = `../../../kernel/iommu_groups/${20 + index}`;
  }
  return { files, links, addresses: [A, B], driver };
}

/** A simulated machine of a family in code, which has two functions of one model. */
function simulated(family: DeviceFamily, driver: string): BusMachine {
  const { files, links, options = {} } = hardwareOf(family, { [family.name]: 2 }, 30_000);
  const addresses = Object.entries(links).flatMap(([path, target]) =>
    target.endsWith(`/drivers/${driver}`) ? [/([0-9a-f:]+\.\d)\/driver$/.exec(path)?.[1] ?? ''] : [],
  );
  const [first = '', second = ''] = [...new Set(addresses)].sort();
  return { files, links, options, driver, addresses: [first, second] };
}

/** A family that does not say which drivers its hardware has. */
const DRIVERLESS = `
family: driverless
summary: Acme boards
devices: [{ kind: board, find: { pci: { vendor: "0x1acd", devices: ["0x0001"] } }, id: "{pci}" }]
pcie: true
`;

export const loaded = async (name: string): Promise<DeviceFamily> =>
  name === 'driverless' ? declaredFamily(DRIVERLESS) : ((await familyLoaders[name]?.()) as DeviceFamily);

/** The machine of each family that has hardware on the PCI bus. */
export const MACHINES: Readonly<Record<string, (family: DeviceFamily) => BusMachine>> = {
  amdgpu: (family) => simulated(family, 'amdgpu'),
  intelgpu: (family) => simulated(family, 'xe'),
  nvme: (family) => simulated(family, 'nvme'),
  infiniband: (family) => {
    const machine = simulated(family, 'mlx5_core');
    const isClass = (path: string): boolean => machine.addresses.some((address) => path.endsWith(`/${address}/class`));
    return {
      ...machine,
      files: Object.fromEntries(Object.entries(machine.files).map(([path, text]) => [path, isClass(path) ? '0x020700\n' : text])),
    };
  },
  netdev: (family) => simulated(family, 'ice'),
  fpga: () => machineOf({ vendor: '0x10ee', device: '0x50b4', class: '0x120000', driver: 'ami' }, () => ({})),
  gaudi: () =>
    machineOf({ vendor: '0x1da3', device: '0x1020', class: '0x120000', driver: 'habanalabs' }, (index) => ({
      files: {
        status: 'operational\n',
        hard_reset_cnt: '0\n',
        [`accel/accel${index}/dev`]: `261:${index}\n`,
        [`dev/accel/accel${index}`]: '',
        [`dev/accel/accel_controlD${index}`]: '',
      },
    })),
  tpu: () =>
    machineOf({ vendor: '0x1ae0', device: '0x006f', class: '0x120000', driver: 'vfio-pci' }, (index) => ({
      files: { [`dev/vfio/${20 + index}`]: '', 'dev/vfio/vfio': '' },
    })),
  qat: () =>
    machineOf({ vendor: '0x8086', device: '0x4940', class: '0x0b4000', driver: '4xxx' }, () => ({
      files: { 'qat/state': 'up\n', 'qat_ras/errors_fatal': '0\n', 'qat_ras/errors_nonfatal': '0\n' },
    })),
  ve: () =>
    machineOf({ vendor: '0x1bcf', device: '0x001c', class: '0x120000', driver: 've_drv' }, (index) => ({
      files: { [`ve/ve${index}/ve_state`]: '1\n', [`ve/ve${index}/num_of_core`]: '8\n', [`dev/ve${index}`]: '' },
    })),
  tenstorrent: () =>
    machineOf({ vendor: '0x1e52', device: '0xb140', class: '0x120000', driver: 'tenstorrent' }, (index) => ({
      files: { [`tenstorrent/tenstorrent!${index}/tt_card_type`]: 'p150a\n', [`dev/tenstorrent/${index}`]: '' },
    })),
  intelnpu: () =>
    machineOf({ vendor: '0x8086', device: '0x643e', class: '0x120000', driver: 'intel_vpu' }, (index) => ({
      files: { [`accel/accel${index}/dev`]: `261:${index}\n`, [`dev/accel/accel${index}`]: '' },
    })),
  intelfec: () => machineOf({ vendor: '0x8086', device: '0x57c0', class: '0x120001', driver: 'vfio-pci' }, () => ({})),
  driverless: () => machineOf({ vendor: '0x1acd', device: '0x0001', class: '0x120000', driver: 'acme' }, () => ({})),
  neuron: () => {
    const machine = machineOf({ vendor: '0x1d0f', device: '0x7364', class: '0x088000', driver: 'neuron-driver' }, () => ({}));
    const devices = Object.fromEntries(
      [0, 1].map((index) => [`sys/devices/virtual/neuron_device/neuron${index}/stats/hardware/mem_ecc_uncorrected`, '0\n']),
    );
    const rows = machine.addresses.map((bdf, index) => ({
      neuron_device: index,
      bdf,
      nc_count: 2,
      memory_size: 1_024,
      neuroncore_ids: [],
    }));
    const program = `#!/bin/sh\ncat <<'END'\n${JSON.stringify(rows)}\nEND\n`;
    return {
      ...machine,
      files: { ...machine.files, ...devices, 'bin/neuron-ls': program },
      options: { 'ls-path': '{root}/bin/neuron-ls' },
    };
  },
};

/** Files that the PCI core has of a function without a driver. */
const CORE =
  /\/(?:vendor|device|class|config|numa_node|power_state|subsystem_\w+|aer_\w+|(?:current|max)_link_\w+|sriov_\w+|power\/\w+|driver_override)$/;

/** Directory of a function, below `/sys/devices`. */
export const directoryOf = ({ links }: BusMachine, address: string): string =>
  (links[`sys/bus/pci/devices/${address}`] ?? '').replace(/^(?:\.\.\/)+/, 'sys/');

/** What a function loses when its driver leaves it: entries of its directory, and links to them. */
export function madeFor(machine: BusMachine, address: string): { readonly entries: readonly string[]; readonly links: readonly string[] } {
  const directory = directoryOf(machine, address);
  const index = machine.addresses.indexOf(address);
  const own = Object.keys(machine.files).filter((path) => path.startsWith(`${directory}/`) && !CORE.test(path));
  const entries = own
    .map((path) => `${directory}/${path.slice(directory.length + 1).split('/')[0]}`)
    .filter((path) => !/\/power$/.test(path));
  const virtual = Object.keys(machine.files).flatMap((path) => new RegExp(`^.*/neuron_device/neuron${index}(?=/)`).exec(path)?.[0] ?? []);
  const links = Object.entries(machine.links).flatMap(([path, target]) =>
    path === `${directory}/driver` || /\/drivers\/[^/]+\/[^/]+$/.test(path)
      ? path.includes(address)
        ? [path]
        : []
      : target.includes(`/${address}/`)
        ? [path]
        : [],
  );
  return { entries: [...new Set([...entries, ...virtual])], links };
}
