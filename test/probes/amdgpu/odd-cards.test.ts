import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DeviceReport } from '../../../src/model/collection.ts';
import { emptyMachine, type ProbedMachine, reportOf, seriesOf } from './harness.ts';

const CARD = '0000:0b:00.0';

let machine: ProbedMachine;
beforeEach(() => {
  machine = emptyMachine();
});
afterEach(() => machine.end());

/** A card as the kernel shows it, without the files of the PCI core. */
function addCard(address: string, minor: number): string {
  const directory = `sys/devices/pci0000:00/${address}`;
  machine.write(`${directory}/drm/card${minor - 128}/dev`, `226:${minor - 128}\n`);
  machine.write(`${directory}/drm/renderD${minor}/dev`, `226:${minor}\n`);
  machine.link(`${directory}/driver`, '../../../bus/pci/drivers/amdgpu');
  machine.link(`sys/bus/pci/devices/${address}`, `../../../devices/pci0000:00/${address}`);
  for (const name of [`card${minor - 128}`, `renderD${minor}`])
    machine.link(`sys/class/drm/${name}`, `../../devices/pci0000:00/${address}/drm/${name}`);
  return directory;
}

describe('a card without the files of the PCI core', () => {
  it('has vendor and device from its uevent, in the form of those files', () => {
    const directory = addCard(CARD, 128);
    machine.write(`${directory}/uevent`, `DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:74AB\nPCI_SLOT_NAME=${CARD}\n`);
    const { device } = reportOf(machine.collect(), CARD);
    expect([device.pciVendor, device.pciDevice]).toEqual(['0x1002', '0x74ab']);
  });

  it.each(['PCI_ID=1002\n', 'XPCI_ID=1002:74AB\n', ''])('has neither from the uevent %j', (uevent) => {
    machine.write(`${addCard(CARD, 128)}/uevent`, uevent);
    const { device } = reportOf(machine.collect(), CARD);
    expect([device.pciVendor, device.pciDevice]).toEqual([undefined, undefined]);
  });
});

describe('the vendor of the memory', () => {
  it.each([
    ['hynix', 'hynix'],
    ['unknown', ''],
  ])('that the driver calls %s is the label "%s"', (text, label) => {
    machine.write(`${addCard(CARD, 128)}/mem_info_vram_vendor`, `${text}\n`);
    const info = reportOf(machine.collect(), CARD).readings.find(({ labels }) => labels?.memory_vendor !== undefined);
    expect(info?.labels?.memory_vendor).toBe(label);
  });
});

describe('the two powers of an APU of a handheld', () => {
  it('are the power of the card, and two averages with other names, so that no sum counts power twice', () => {
    const monitor = `${addCard(CARD, 128)}/hwmon/hwmon2`;
    const files = { name: 'amdgpu', power1_label: 'slowPPT', power1_input: '5100000', power1_average: '4200000' };
    const second = { power2_label: 'fastPPT', power2_average: '3900000', power2_cap: '16000000' };
    for (const [name, text] of Object.entries({ ...files, ...second })) machine.write(`${monitor}/${name}`, `${text}\n`);
    const powers = Object.entries(seriesOf(reportOf(machine.collect(), CARD))).filter(([name]) => name.startsWith('device_power_watts'));
    expect(Object.fromEntries(powers)).toEqual({
      'device_power_watts{sensor=gpu}': 5.1,
      'device_power_watts{sensor=gpu_average}': 4.2,
      'device_power_watts{sensor=fastppt_average}': 3.9,
    });
  });
});

describe('links between cards', () => {
  const ADDRESSES = ['0000:11:00.0', '0000:12:00.0', '0000:61:00.0', '0000:62:00.0'];
  const nodes = 'sys/class/kfd/kfd/topology/nodes';
  /** Node 0 is the processor, and node `n + 1` is card `n`. */
  const link = (from: number, n: number, to: number, type: number): void =>
    machine.write(
      `${nodes}/${from}/io_links/${n}/properties`,
      `type ${type}\nversion_major 0\nnode_from ${from}\nnode_to ${to}\nweight 15\n`,
    );

  beforeEach(() => {
    machine.write(`${nodes}/0/properties`, 'cpu_cores_count 64\nsimd_count 0\n');
    for (const [n, address] of ADDRESSES.entries()) {
      addCard(address, 128 + n);
      const bus = Number.parseInt(address.slice(5, 7), 16);
      machine.write(
        `${nodes}/${n + 1}/properties`,
        `simd_count 416\nlocation_id ${bus << 8}\ndomain 0\ndrm_render_minor ${128 + n}\nunique_id ${7_000 + n}\ngfx_target_version 90010\n`,
      );
    }
  });

  const peersOf = (reports: readonly DeviceReport[]): unknown =>
    Object.fromEntries(reports.map(({ device }) => [device.id, device.peers?.map((peer) => [peer.device, peer.links])]));

  it('join the cards of a group, and a path by PCIe joins none', () => {
    // Links of type 11 are xGMI, those of type 2 are PCIe. The first card has two links to its neighbour.
    for (const [n, to] of [2, 2].entries()) link(1, n, to, 11);
    link(1, 2, 0, 2);
    link(1, 3, 3, 2);
    link(2, 0, 1, 11);
    link(3, 0, 4, 11);
    link(4, 0, 3, 11);
    expect(peersOf(machine.collect().reports)).toEqual({
      '0000:11:00.0': [['0000:12:00.0', 2]],
      '0000:12:00.0': [['0000:11:00.0', 1]],
      '0000:61:00.0': [['0000:62:00.0', 1]],
      '0000:62:00.0': [['0000:61:00.0', 1]],
    });
  });

  it('to a node that no card has, or to the card itself, join nothing', () => {
    link(1, 0, 9, 11);
    link(1, 1, 1, 11);
    expect(peersOf(machine.collect().reports)).toEqual(Object.fromEntries(ADDRESSES.map((address) => [address, undefined])));
  });
});
