// Project: programs. Histories in number.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { type WatchedNode, watch } from '../false-alarms/watched-node.ts';
import { type BusMachine, directoryOf, loaded, MACHINES, madeFor } from './bus-machines.ts';

/** The whole agent on a machine of a family, whose functions come and go as their drivers do. */
class Driven {
  readonly node: WatchedNode;
  readonly machine: BusMachine;

  constructor(node: WatchedNode, machine: BusMachine) {
    this.node = node;
    this.machine = machine;
  }

  /** Its driver leaves a function. */
  unbind(address: string): void {
    unbind(this.node.tree, this.machine, address);
  }

  /** Its own driver gets the function. */
  rebind(address: string): void {
    this.bindTo(address, undefined);
    this.node.tree.take(`unbound ${address}`);
  }

  /** The driver prints a line about a function, which leaves the bus before the next read. */
  leave(address: string, line: string): void {
    this.node.log(`${line}\n${deviceOf(line)}`.trimEnd());
    this.unbind(address);
    this.node.tree.remove(`gone ${address}`, `sys/bus/pci/devices/${address}`);
    this.node.tree.hide(`gone ${address}`, directoryOf(this.machine, address), { kind: 'absent' });
  }

  /** Another driver gets a function, or none. */
  bindTo(address: string, driver: string | undefined): void {
    const link = join(this.node.tree.root, directoryOf(this.machine, address), 'driver');
    rmSync(link, { force: true });
    if (driver === undefined) return;
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(`../../../bus/pci/drivers/${driver}`, link);
  }

  /** `unhealthy: StartFailed Reported "…"`: state, conditions that count, and in brackets those that do not count yet. */
  of(address: string): string {
    const found = this.node.snapshot.devices.filter(
      ({ device }) => device.pciAddress === address && device.parent === undefined && device.kind !== 'namespace',
    );
    if (found.length !== 1) return `${found.length} devices`;
    const { verdict: { state = '', conditions = [], pending = [] } = {} } = found[0] ?? {};
    const text = ({ type, reason, message }: { type: string; reason: string; message: string }): string => `${type} ${reason} "${message}"`;
    const [counting, waiting] = [conditions.map(text), pending.map((one) => `[${text(one)}]`)];
    return [state, ...counting, ...waiting].join('; ');
  }

  get both(): readonly string[] {
    return this.machine.addresses.map((address) => this.of(address));
  }

  get problems(): readonly string[] {
    return this.node.problems;
  }
}

function unbind(tree: WatchedNode['tree'], machine: BusMachine, address: string): void {
  const { entries, links } = madeFor(machine, address);
  for (const path of entries) tree.hide(`unbound ${address}`, path, { kind: 'absent' });
  for (const path of links) tree.remove(`unbound ${address}`, path);
}

interface Start {
  /** Places of the functions that no driver gets at the start. */
  readonly unbound?: readonly (0 | 1)[];
  readonly log?: readonly string[];
  readonly isBlind?: boolean;
  /** The driver is loaded. */
  readonly isLoaded?: boolean;
  /** Device nodes that the machine has, too. */
  readonly nodes?: readonly string[];
  readonly hasKubelet?: boolean;
}

async function start(
  name: string,
  { unbound = [], log = [], isBlind = false, isLoaded = false, nodes = [], hasKubelet = false }: Start = {},
): Promise<Driven> {
  const family = await loaded(name);
  const machine = (MACHINES[name] as (family: DeviceFamily) => BusMachine)(family);
  const lines = [
    'Linux version 7.0',
    ...log.map((line) => line.replaceAll('{A}', machine.addresses[0]).replaceAll('{B}', machine.addresses[1])),
  ];
  const kmsg = lines.map((line, at) => `3,${at},${at * 1_000},-;${line}\n${deviceOf(line)}`).join('');
  const files = {
    ...Object.fromEntries(nodes.map((path) => [path, ''])),
    ...machine.files,
    'dev/kmsg': kmsg,
    ...(isLoaded && { [`sys/bus/pci/drivers/${machine.driver}/bind`]: '' }),
  };
  const { links, options = {} } = machine;
  const node = await watch({ family, files, links, options, hasKubelet }, (tree) => {
    for (const at of unbound) unbind(tree, machine, machine.addresses[at]);
    if (isBlind) tree.hide('blind', 'dev', { kind: 'absent' });
  });
  return new Driven(node, machine);
}

const deviceOf = (line: string): string => {
  const address = /^\S+ ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): /.exec(line)?.[1];
  return address === undefined ? '' : ` SUBSYSTEM=pci\n DEVICE=+pci:${address}\n`;
};

const FAMILIES = Object.keys(MACHINES);
/** Whose plugins give addresses. */
const RESOURCES: Readonly<Record<string, string>> = { gaudi: 'habana.ai/gaudi' };
const NOT_IN_USE = 'healthy; NotInUse NoDriver "not in use: no driver is bound, and nobody wants one"';
const FAILED = 'StartFailed Reported "the driver could not start the device: error -22 (invalid argument)"';
const ABSENT = 'unknown; DeviceNotRead NeverRead "was never read"';
const unboundAt = (address: string): string => `no driver is bound to PCI function ${address}`;
const notStartedAt = (address: string): string => `NotStarted NotBound "${unboundAt(address)}, and one is to another device of this model"`;

/** What a family says by a condition of its own of a board that no driver has. */
const own = (name: string, address: string): string | undefined =>
  name === 'tpu' ? `DriverMissing NoDriver "${unboundAt(address)}"` : undefined;
const driverOf = async (name: string): Promise<string> =>
  (MACHINES[name] as (family: DeviceFamily) => BusMachine)(await loaded(name)).driver;

describe.each(FAMILIES)('%s', (name) => {
  it('with drivers is healthy, and says nothing of them', async () => {
    const driven = await start(name);
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });

  it('that nobody ever bound is not in use, and says so', async () => {
    const driven = await start(name, { unbound: [0, 1] });
    await driven.node.pass(minutes(5));
    const expected = driven.machine.addresses.map((address) => {
      const said = own(name, address);
      return said === undefined ? NOT_IN_USE : `unhealthy; ${said}`;
    });
    expect(driven.both).toEqual(expected);
    // The virtual functions of a network port have drivers of their own.
    if (name !== 'netdev') expect(Object.values(driven.node.offered ?? {})).not.toContain('Healthy');
  });

  it('that nobody ever bound is wanted while a container holds it, and only then', async () => {
    const driven = await start(name, { unbound: [0, 1], hasKubelet: true });
    const [address] = driven.machine.addresses;
    const free = driven.both;
    driven.node.hold(RESOURCES[name] ?? 'vendor.example/device', address);
    await driven.node.pass(minutes(2));
    const said = own(name, address) ?? `DriverUnbound NoDriver "${unboundAt(address)}, and a container holds it"`;
    expect(driven.both).toEqual([`unhealthy; ${said}`, free[1]]);
    driven.node.release();
    await driven.node.pass(minutes(2));
    expect(driven.both).toEqual(free);
  });

  it.each([
    ['since Linux 6.10', (driver: string) => `${driver} {A}: probe with driver ${driver} failed with error -22`],
    ['before', (driver: string) => `${driver}: probe of {A} failed with error -22`],
  ])('whose driver could not start a function says it by the line of the driver core %s', async (_, line) => {
    const driven = await start(name, { unbound: [0, 1], log: [line(await driverOf(name))] });
    const [first, second] = driven.both as [string, string];
    expect(first).toMatch(/^unhealthy; /);
    expect(first).toContain(FAILED);
    expect(second).not.toContain('StartFailed');
  });

  it('whose driver could start no function is unhealthy at the first look, with all its functions', async () => {
    const driver = await driverOf(name);
    const log = ['{A}', '{B}'].map((address) => `${driver} ${address}: probe with driver ${driver} failed with error -22`);
    const driven = await start(name, { unbound: [0, 1], log, isLoaded: true });
    for (const said of driven.both) expect(said).toMatch(/^unhealthy; /);
    for (const said of driven.both) expect(said).toContain(FAILED);
    await driven.node.restart();
    for (const said of driven.both) expect(said).toContain(FAILED);
  });

  it('of which the driver has one function and not the other is judged by that', async () => {
    const driver = await driverOf(name);
    const driven = await start(name, { unbound: [0], log: [`${driver} {A}: probe with driver ${driver} failed with error -22`] });
    await driven.node.pass(minutes(3));
    const [first, second] = driven.both as [string, string];
    expect(first).toContain(FAILED);
    // A machine may have network ports that nobody wants.
    if (own(name, '') === undefined && name !== 'netdev') expect(first).toContain(notStartedAt(driven.machine.addresses[0]));
    expect(second).toBe('healthy');
    driven.rebind(driven.machine.addresses[0]);
    await driven.node.pass(minutes(2));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });

  it('that loses its driver later may be between two drivers for a minute, and is then unhealthy until it has one', async () => {
    const driven = await start(name);
    const [address] = driven.machine.addresses;
    driven.unbind(address);
    await driven.node.pass(seconds(10));
    const said = `DriverUnbound NoDriver "${unboundAt(address)}"`;
    expect(driven.both).toEqual([`healthy; [${said}]`, 'healthy']);
    await driven.node.pass(seconds(90));
    expect(driven.both).toEqual([`unhealthy; ${said}`, 'healthy']);
    await driven.node.restart();
    await driven.node.pass(seconds(90));
    expect(driven.both).toEqual([`unhealthy; ${said}`, 'healthy']);
    driven.rebind(address);
    await driven.node.pass(minutes(2));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });

  it('that leaves the bus in the read that tells why is missing, with its cause', async () => {
    const driven = await start(name);
    const [address] = driven.machine.addresses;
    driven.leave(address, `${driven.machine.driver} ${address}: probe with driver ${driven.machine.driver} failed with error -22`);
    await driven.node.pass(seconds(90));
    expect(driven.of(address)).toMatch(/^unhealthy; /);
    expect(driven.of(address)).toContain(FAILED);
    expect(driven.of(address)).toContain('DeviceMissing');
    await driven.node.restart();
    expect(driven.of(address)).toContain(FAILED);
  });

  it('in a container without log and nodes is never called better than with them', async () => {
    const driven = await start(name, { unbound: [0, 1], isBlind: true, isLoaded: true });
    await driven.node.pass(minutes(1));
    const expected = driven.machine.addresses.map((address) => {
      const said = own(name, address);
      return said === undefined ? ABSENT : `unhealthy; ${said}`;
    });
    expect(driven.both).toEqual(expected);
  });

  it('whose sysfs the container does not have any more is unknown, and no fault', async () => {
    const driven = await start(name);
    driven.node.tree.hide('blind', 'sys', { kind: 'absent' });
    await driven.node.restart();
    await driven.node.pass(minutes(10));
    for (const said of driven.both) expect(said).toMatch(/^unknown; /);
    driven.node.tree.take('blind');
    await driven.node.pass(minutes(2));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });
});

/** Nodes of both functions, of which the first one goes; without a text the family does not judge nodes. */
const NODES: Readonly<Record<string, readonly [nodes: readonly [string, string], says?: string]>> = {
  amdgpu: [['dev/dri/renderD128', 'dev/dri/renderD129'], 'NodeMissing NoNode "/dev/dri/renderD128 does not exist"'],
  intelgpu: [['dev/dri/renderD328', 'dev/dri/renderD329'], 'NodeMissing NoNode "/dev/dri/renderD328 does not exist"'],
  infiniband: [['dev/infiniband/uverbs0', 'dev/infiniband/uverbs1'], 'CharDeviceMissing UverbsNodeMissing "'],
  gaudi: [['dev/accel/accel0', 'dev/accel/accel1'], 'NodeMissing NoNode "/dev/accel/accel0 does not exist"'],
  tpu: [['dev/vfio/20', 'dev/vfio/21'], 'NodeMissing NoNode "/dev/vfio/20 does not exist"'],
  ve: [['dev/ve0', 'dev/ve1'], 'NodeMissing NoNode "/dev/ve0 does not exist"'],
  neuron: [['dev/neuron0', 'dev/neuron1'], 'NodeMissing NoNode "/dev/neuron0 does not exist"'],
  tenstorrent: [['dev/tenstorrent/0', 'dev/tenstorrent/1'], 'NodeMissing NoNode "/dev/tenstorrent/0 does not exist"'],
  intelnpu: [['dev/accel/accel0', 'dev/accel/accel1'], 'NodeMissing NoNode "/dev/accel/accel0 does not exist"'],
  nvme: [['dev/nvme0', 'dev/nvme1']],
  fpga: [['dev/dri/renderD128', 'dev/dri/renderD129']],
};

describe('a device node that is missing', () => {
  it.each(Object.entries(NODES))('of %s', async (name, [nodes, says]) => {
    const driven = await start(name, { nodes });
    const [address] = driven.machine.addresses;
    expect(driven.both).toEqual(['healthy', 'healthy']);
    driven.node.tree.hide('node', nodes[0], { kind: 'absent' });
    await driven.node.pass(minutes(4));
    if (says !== undefined) expect(driven.of(address)).toMatch(/^unhealthy; /);
    expect(driven.of(address)).toContain(says ?? 'healthy');
    expect(driven.of(driven.machine.addresses[1])).toBe('healthy');
    driven.node.tree.take('node');
    await driven.node.pass(seconds(130));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });

  it('of ve, because the driver made none', async () => {
    const driven = await start('ve');
    const [address] = driven.machine.addresses;
    driven.node.tree.hide('node', `${directoryOf(driven.machine, address)}/ve`, { kind: 'absent' });
    await driven.node.pass(minutes(4));
    expect(driven.of(address)).toMatch(/^unhealthy; .*NodeMissing NoNode "the driver made no device node"/);
  });

  it.each(Object.keys(NODES))('says nothing where the agent of %s sees no node at all', async (name) => {
    const driven = await start(name, { isBlind: true });
    await driven.node.pass(minutes(2));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });
});

const isHandedOver = (driver: string): RegExp => new RegExp(`^healthy; HandedOver OtherDriver "handed over to ${driver}`);

/** Families whose devices are served by VFIO have no other driver to go to. */
describe.each(FAMILIES.filter((name) => !['tpu', 'intelfec'].includes(name)))('%s that goes to a virtual machine', (name) => {
  it('is handed over while the machine has it, over restarts with and without memory, and healthy at once after its return', async () => {
    const driven = await start(name);
    const [address] = driven.machine.addresses;
    const events = (): readonly string[] =>
      driven.node.snapshot.devices.flatMap(({ device, verdict }) => (verdict.state === 'healthy' ? [] : [`${device.id} ${verdict.state}`]));
    // By the two steps of a driver of claims: unbind, then choose and bind.
    driven.unbind(address);
    await driven.node.pass(seconds(10));
    if (name !== 'fpga') expect(events()).toEqual([]);
    driven.bindTo(address, 'vfio-pci');
    await driven.node.pass(minutes(2));
    expect(driven.of(address)).toMatch(isHandedOver('vfio-pci'));
    expect(events()).toEqual([]);
    await driven.node.restart();
    await driven.node.pass(minutes(1));
    expect(driven.of(address)).toMatch(isHandedOver('vfio-pci'));
    await driven.node.restartWithoutState();
    await driven.node.pass(minutes(1));
    expect(driven.of(address)).toMatch(isHandedOver('vfio-pci'));
    expect(events()).toEqual([]);
    driven.rebind(address);
    await driven.node.pass(seconds(10));
    expect(driven.both).toEqual(['healthy', 'healthy']);
  });

  it('that does not return to its driver is a fault after a minute', async () => {
    const driven = await start(name, { unbound: [0] });
    const [address] = driven.machine.addresses;
    driven.bindTo(address, 'vfio-pci');
    await driven.node.pass(minutes(3));
    if (name === 'netdev') return;
    expect(driven.of(address)).toMatch(isHandedOver('vfio-pci'));
    driven.bindTo(address, undefined);
    await driven.node.pass(minutes(2));
    expect(driven.of(address)).toMatch(/^unhealthy; .*DriverUnbound NoDriver/);
  });
});
