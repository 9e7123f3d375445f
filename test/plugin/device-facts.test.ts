import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import type { Device } from '../../src/model/device.ts';
import type { DeviceSelector } from '../../src/model/plugin-resource.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { fillTemplate, PLACEHOLDERS } from '../../src/plugin/allocation/answer.ts';
import { selectDevices } from '../../src/plugin/offers/inventory.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { noCompiler } from '../support/compiled-library.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';
import { unless } from '../support/skipped.ts';
import { deviceState } from './support.ts';

/** What the families read on each golden machine. */
const machines: (readonly DeviceState[])[] = [];

async function readMachines(name: string): Promise<void> {
  const family = (await familyLoaders[name]?.()) as DeviceFamily;
  const folder = join('test/probes', name);
  for (const entry of readdirSync(folder).filter((entry) => existsSync(join(folder, entry, 'machine.yaml')))) {
    const { root, options, remove } = buildMachine(readMachine(join(folder, entry, 'machine.yaml')));
    const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);
    const probe = family.createProbe(host, probeOptions(family, options));
    try {
      machines.push((await probe.collect()).reports.map(({ device }) => deviceState(device)));
    } finally {
      await probe.close?.();
      remove();
    }
  }
}

const FACTS: Readonly<Record<keyof Device, true>> = {
  family: true,
  id: true,
  identity: true,
  kind: true,
  aliases: true,
  parent: true,
  pciAddress: true,
  numaNode: true,
  model: true,
  product: true,
  vendor: true,
  uuid: true,
  serial: true,
  driver: true,
  driverVersion: true,
  firmware: true,
  peers: true,
  index: true,
  minor: true,
  moduleId: true,
  location: true,
  pciVendor: true,
  pciDevice: true,
  pciPath: true,
  direct: true,
  peerMemory: true,
  physicalFunction: true,
  vfIndex: true,
  sfNumber: true,
  linkLayers: true,
  netdevs: true,
  characterDevices: true,
  profile: true,
  gpuInstance: true,
  computeInstance: true,
  isInternal: true,
  stack: true,
  unserved: true,
};

const quoted = (text: string | undefined): string | undefined => text?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** A value of each selector that a device answers to, made from what its family told. */
const SELECTORS: { readonly [K in keyof Required<DeviceSelector>]: (device: Device) => DeviceSelector[K] | undefined } = {
  family: ({ family }) => family,
  kind: ({ kind }) => kind,
  model: ({ model }) => quoted(model),
  pciVendor: ({ pciVendor }) => pciVendor,
  pciDevice: ({ pciDevice }) => pciDevice,
  driver: ({ driver }) => quoted(driver),
  linkLayer: ({ linkLayers }) => linkLayers?.[0],
  pfName: ({ physicalFunction, parent }) => quoted(physicalFunction ?? parent),
  profile: ({ profile }) => quoted(profile),
  numaNode: ({ numaNode }) => numaNode,
  devices: ({ aliases }) => (aliases[0] === undefined ? undefined : [aliases[0]]),
  hasParts: ({ parent }) => (parent === undefined ? undefined : false),
};

beforeAll(async () => {
  for (const name of Object.keys(familyLoaders)) await readMachines(name);
});

describe.skipIf(noCompiler !== undefined)(`facts of devices${unless(noCompiler === undefined, noCompiler ?? '')}`, () => {
  it.each(Object.keys(FACTS) as (keyof Device)[])('%s is told on some machine', (fact) => {
    const tellers = machines.flat().filter(({ device }) => device[fact] !== undefined && `${device[fact]}` !== '');
    expect(tellers).not.toEqual([]);
  });

  it('name the PCI-SIG ids in one form', () => {
    const ids = machines.flat().flatMap(({ device: { pciVendor, pciDevice } }) => [pciVendor ?? [], pciDevice ?? []].flat());
    expect(ids.filter((id) => !/^0x[0-9a-f]{4}$/.test(id))).toEqual([]);
  });

  it('name device nodes by their whole paths, and lie on a way that ends at the device', () => {
    const devices = machines.flat().map(({ device }) => device);
    expect(devices.flatMap(({ characterDevices = [] }) => characterDevices).filter((path) => !path.startsWith('/dev/'))).toEqual([]);
    const astray = devices.filter(({ pciPath, pciAddress }) => pciPath !== undefined && !pciPath.endsWith(`/${pciAddress}`));
    expect(astray.map(({ id, pciPath }) => [id, pciPath])).toEqual([]);
  });

  it('name as peers devices that are there', () => {
    for (const states of machines) {
      const ids = states.map(({ device }) => device.id);
      expect(states.flatMap(({ device: { peers = [] } }) => peers.map((peer) => peer.device)).filter((id) => !ids.includes(id))).toEqual(
        [],
      );
    }
  });
});

describe.skipIf(noCompiler !== undefined)(`selectors${unless(noCompiler === undefined, noCompiler ?? '')}`, () => {
  it.each(Object.entries(SELECTORS))('%s selects the device that tells it', (name, valueIn) => {
    let selected = 0;
    for (const states of machines) {
      for (const { device } of states) {
        const value = valueIn(device);
        if (value === undefined) continue;
        const found = selectDevices({ resource: 'example.com/x', select: { [name]: value } }, states);
        if (found.some((state) => state.device === device)) selected += 1;
      }
    }
    expect(selected).toBeGreaterThan(0);
  });
});

describe.skipIf(noCompiler !== undefined)(`placeholders${unless(noCompiler === undefined, noCompiler ?? '')}`, () => {
  it.each(PLACEHOLDERS)('{%s} stands for something on some machine', (name) => {
    const filled = machines
      .flat()
      .map(({ device }) => fillTemplate(`{${name}}`, { resource: 'example.com/x', id: device.id, device, path: '/dev/x' }));
    expect(filled.filter((text) => text !== undefined && text !== '')).not.toEqual([]);
  });
});
