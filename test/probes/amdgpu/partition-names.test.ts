import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { Resolver } from '../../../src/join/resolve.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { buildMachine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { emptyMachine, holding, type ProbedMachine, reportOf, seriesOf } from './harness.ts';

it.each([
  ['mi300x-cpx-one-partition-missing', /^amdgpu_xcp_\d+$/],
  ['partitions-with-a-dot', /^amdgpu_xcp\.\d+$/],
])('partitions of %s have the name and the nodes of their platform device', async (name, form) => {
  const { root, options, remove } = buildMachine(readMachine(`test/probes/amdgpu/${name}/machine.yaml`));
  const host = createHost({ sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` }, systemClock);
  const probe = family.createProbe(host, probeOptions(family, options));
  try {
    const later = (await probe.collect()).reports.filter(({ device }) => device.kind === 'partition' && !device.id.endsWith('xcp0'));
    expect(later.length).toBeGreaterThan(0);
    for (const { device } of later) {
      expect(device.aliases[0]).toMatch(form);
      // ROCm's device plugin may spell it with an underscore where the kernel has a dot.
      const spelt = (device.aliases[0] as string).replace('.', '_');
      expect(device.aliases).toContain(spelt);
      expect(device.characterDevices?.length).toBeGreaterThan(1);
    }
  } finally {
    await probe.close?.();
    remove();
  }
});

/** ROCm/device-metrics-exporter#495: eight MI355X in mode DPX, of which an exporter showed the first partitions only. */
describe('eight MI355X in mode DPX', () => {
  let machine: ProbedMachine;
  afterEach(() => machine.end());

  const CARDS = [0x05, 0x15, 0x65, 0x75, 0x85, 0x95, 0xe5, 0xf5];
  const addressOf = (bus: number): string => `0000:${bus.toString(16).padStart(2, '0')}:00.0`;
  const platformOf = (n: number): string => `amdgpu_xcp.${29 + n}`;

  function build(): ProbedMachine {
    machine = emptyMachine();
    const nodes = 'sys/class/kfd/kfd/topology/nodes';
    const node = (number: number, bus: number, partition: number, minor: number): void => {
      const lines = [
        'simd_count 512',
        `location_id ${(bus << 8) | partition}`,
        'domain 0',
        `drm_render_minor ${minor}`,
        `unique_id ${9_000 + bus}`,
      ];
      machine.write(`${nodes}/${number}/gpu_id`, `${7_000 + number}\n`);
      machine.write(`${nodes}/${number}/properties`, `${lines.join('\n')}\n`);
      machine.write(`${nodes}/${number}/mem_banks/0/properties`, 'heap_type 1\nsize_in_bytes 154618822656\n');
      machine.write(`${nodes}/${number}/mem_banks/0/used_memory`, `${(partition + 1) * 1_000 + bus}\n`);
    };
    CARDS.forEach((bus, n) => {
      const card = `devices/pci0000:00/${addressOf(bus)}`;
      const facts = { vendor: '0x1002', device: '0x75a3', current_compute_partition: 'DPX', current_memory_partition: 'NPS1' };
      for (const [name, text] of Object.entries(facts)) machine.write(`sys/${card}/${name}`, `${text}\n`);
      machine.link(`sys/${card}/driver`, '../../../bus/pci/drivers/amdgpu');
      machine.link(`sys/bus/pci/devices/${addressOf(bus)}`, `../../../${card}`);
      machine.write(`sys/devices/platform/${platformOf(n)}/uevent`, 'DRIVER=amdgpu_xcp\n');
      for (const name of [`card${1 + n}`, `renderD${128 + n}`]) machine.link(`sys/class/drm/${name}`, `../../${card}/drm/${name}`);
      for (const name of [`card${9 + n}`, `renderD${162 + n}`])
        machine.link(`sys/class/drm/${name}`, `../../devices/platform/${platformOf(n)}/drm/${name}`);
      node(2 * n + 2, bus, 0, 128 + n);
      node(2 * n + 3, bus, 1, 162 + n);
    });
    machine.write('sys/class/kfd/kfd/topology/generation_id', '1\n');
    return machine;
  }

  it('are sixteen devices, and each id of the plugin is its own, in either form', () => {
    const devices = build()
      .collect()
      .reports.map(({ device }) => device);
    expect(devices.filter(({ kind }) => kind === 'partition').length).toBe(16);
    const resolver = new Resolver(devices, { pools: [], families: new Map([['amdgpu', family.resolve as never]]) });
    const resolved = (deviceId: string): readonly string[] =>
      resolver.resolve({ namespace: 'n', pod: 'p', container: 'c', resource: 'amd.com/gpu', deviceId, numaNodes: [] }).devices;
    CARDS.forEach((bus, n) => {
      expect(resolved(addressOf(bus))).toEqual([`amdgpu/${addressOf(bus)}-xcp0`]);
      for (const id of [platformOf(n), platformOf(n).replace('.', '_')]) expect(resolved(id)).toEqual([`amdgpu/${addressOf(bus)}-xcp1`]);
    });
  });

  it('lack none, and each has the memory of its own', () => {
    const collection = build().collect();
    for (const bus of CARDS) {
      expect(Object.keys(holding(reportOf(collection, addressOf(bus))))).not.toContain('PartitionMissing');
      for (const number of [0, 1]) {
        const series = seriesOf(reportOf(collection, `${addressOf(bus)}-xcp${number}`));
        expect(series.device_memory_used_bytes).toBe((number + 1) * 1_000 + bus);
        expect(Object.keys(series).filter((name) => name.startsWith('device_utilization'))).toEqual([]);
      }
    }
    expect(collection.reports[0]?.device.model).toBe('AMD Instinct MI355X');
  });
});
