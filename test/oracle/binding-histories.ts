import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { type BusMachine, directoryOf, loaded, MACHINES, madeFor } from '../probes/bus-machines.ts';
import type { Choose } from '../support/seeded.ts';
import { type Binding, BindingKnowledge, type BusFacts, type FamilyWords } from './binding-knowledge.ts';
import type { OracleFamily } from './family.ts';
import { contradictions } from './held.ts';
import { FIRST_RECORD, LOG, log, ofDevice } from './kernel-log.ts';
import type { Life } from './lives.ts';
import { INTERVAL_MS, OracleNode } from './node.ts';

/** A family on a machine with two functions of one model. */
export interface BoundFamily {
  readonly machine: BusMachine;
  readonly oracle: OracleFamily;
  readonly words: FamilyWords;
  /** The driver that hands a function over. */
  readonly handing: string;
  /** A container can have a function that was handed over. */
  readonly isForUserSpace: boolean;
  /** As a family of many makers. */
  readonly knowsNoDriver: boolean;
  /** Path of the node of the first function, where the bus tells that it is missing. */
  readonly node?: string;
}

const NODES: Readonly<Record<string, string>> = { gaudi: 'dev/accel/accel0', tpu: 'dev/vfio/20', ve: 've' };

async function boundFamily(name: string): Promise<BoundFamily> {
  const family = await loaded(name);
  const machine = (MACHINES[name] as (family: DeviceFamily) => BusMachine)(family);
  const { files, links, options = {}, addresses, driver } = machine;
  const all = { ...files, [LOG]: FIRST_RECORD, [`sys/bus/pci/drivers/${driver}/bind`]: '' };
  const path = NODES[name];
  const isNode = path?.startsWith('dev/') === true;
  return {
    machine,
    oracle: { family, options, machine: () => ({ files: all, links }), devices: [], faults: [], blindings: [] },
    words: { isWanted: name === 'tpu', isListedByUse: name === 'netdev' },
    // Another than that of VFIO, where that one is the driver of the family.
    isForUserSpace: ['nvme', 'netdev'].includes(name),
    knowsNoDriver: ['netdev', 'driverless'].includes(name),
    handing: driver === 'vfio-pci' ? 'pci-stub' : 'vfio-pci',
    ...(path !== undefined && { node: isNode ? path : `${directoryOf(machine, addresses[0])}/${path}` }),
  };
}

export const boundFamilies: readonly (readonly [name: string, BoundFamily])[] = await Promise.all(
  Object.keys(MACHINES).map(async (name) => [name, await boundFamily(name)] as const),
);

/** Severity of what an agent may say here; what is not named is information. */
const FATAL: ReadonlySet<string> = new Set(['DriverUnbound', 'NotStarted', 'DriverMissing', 'NodeMissing', 'StartFailed']);

const FUNCTIONS = [0, 1] as const;
type At = (typeof FUNCTIONS)[number];

/** A node on which drivers come and go. */
export class BindingLife implements Life {
  readonly story: string[] = [];
  readonly #of: BoundFamily;
  readonly #choose: Choose;
  readonly #node: OracleNode;
  readonly #known: readonly [BindingKnowledge, BindingKnowledge];
  readonly #bindings: [Binding, Binding] = ['own', 'own'];
  readonly #overridden: [boolean, boolean] = [false, false];
  readonly #made = new Set<string>();
  #log: BusFacts['log'] = 'whole';
  #hasNode = true;
  #isLoaded = true;

  constructor(of: BoundFamily, choose: Choose) {
    this.#of = of;
    this.#choose = choose;
    this.#node = new OracleNode(of.oracle, false);
    this.#known = [new BindingKnowledge(of.words), new BindingKnowledge(of.words)];
  }

  async begin(): Promise<void> {
    for (const at of FUNCTIONS) if (this.#choose(2) === 0) this.#unbind(at);
    if (this.#bindings.every((binding) => binding === 'none') && this.#choose(2) === 0) {
      this.story.push('the driver is not loaded');
      this.#isLoaded = false;
      this.#node.tree.hide('unloaded', `sys/bus/pci/drivers/${this.#of.machine.driver}`, { kind: 'absent' });
    }
    if (this.#choose(3) === 0) this.#loseBegin();
    for (const at of FUNCTIONS) if (this.#bindings[at] === 'none' && this.#choose(4) === 0) this.#failStart(at);
    await this.#node.start();
  }

  async end(): Promise<void> {
    for (const link of this.#made) rmSync(join(this.#node.root, link), { force: true });
    await this.#node.stop();
  }

  async live(): Promise<readonly string[]> {
    const at = this.#choose(2) as At;
    const kind = this.#choose(100);
    if (kind < 18) this.#unbind(at);
    else if (kind < 38) this.#rebind(at);
    else if (kind < 52) this.#handOver(at);
    else if (kind < 64) this.#failStart(at);
    else if (kind < 72) this.#toggleNode();
    else if (kind < 80) this.#toggleLog();
    else await this.#restart(kind >= 93);
    return await this.#tick([0, 1, 1, 2, 3, 8, 14][this.#choose(7)] as number);
  }

  async #tick(times: number): Promise<readonly string[]> {
    this.story.push(`${times} collections`);
    for (let time = 0; time < times; time += 1) {
      await this.#node.refresh(0);
      const found = [...FUNCTIONS.flatMap((at) => this.#violations(at)), ...this.#node.differences];
      if (found.length > 0) return [`at the collection ${time + 1}`, ...found];
      await this.#node.clock.advance(INTERVAL_MS, () => this.#node.settle());
    }
    return [];
  }

  #violations(at: At): readonly string[] {
    const facts: BusFacts = {
      nowMs: this.#node.clock.monotonic(),
      binding: this.#standing(at),
      hasSibling: this.#bindings[1 - at] === 'own',
      isLoaded: this.#isLoaded || this.#of.knowsNoDriver,
      log: this.#log,
      hasNode: this.#hasNode || at === 1,
    };
    const expected = this.#known[at].look(facts);
    const address = this.#of.machine.addresses[at];
    const devices = this.#node.snapshot?.devices ?? [];
    const lost = devices.filter(({ verdict }) => verdict.conditions.some(({ type }) => type === 'DeviceMissing'));
    if (lost.length > 0) return lost.map(({ device }) => `${device.id} is said to be missing, and nothing left the bus`);
    const own = devices.filter(({ device: { pciAddress, parent, kind } }) => pciAddress === address && !parent && kind !== 'namespace');
    if (own.length === 0 && this.#known[at].mayBeUnlisted(facts)) return [];
    const [found] = own;
    if (found === undefined || own.length > 1) return [`${address} is listed ${own.length} times`];
    const { state, conditions, pending = [] } = found.verdict;
    const says = `${address} is ${state} (${[...conditions.map(({ type }) => type), ...pending.map(({ type }) => `[${type}]`)].join(', ')})`;
    const counted = new Set(conditions.map(({ type }) => type));
    const wrong = [...contradictions(expected, counted, new Set(pending.map(({ type }) => type)))];
    const justified = counted.has('DeviceNotRead') ? 'unknown' : 'healthy';
    if (state !== ([...counted].some((type) => FATAL.has(type)) ? 'unhealthy' : justified))
      wrong.push('its state is not that of its conditions');
    const offered = this.#node.offered?.get(found.device.id);
    if (
      offered === 'Healthy' &&
      (state === 'unhealthy' || state === 'unknown' || (counted.has('HandedOver') && !this.#of.isForUserSpace) || counted.has('NotInUse'))
    )
      wrong.push('the kubelet is told that a container can have it');
    return wrong.map((text) => `${says}: ${text}`);
  }

  #standing(at: At): Binding {
    return this.#bindings[at] === 'none' && this.#overridden[at] ? 'handed' : this.#bindings[at];
  }

  #unbind(at: At): void {
    if (this.#bindings[at] === 'none') return;
    this.story.push(`the driver of ${at} leaves`);
    this.#leave(at);
  }

  #leave(at: At): void {
    const address = this.#of.machine.addresses[at];
    if (this.#bindings[at] === 'own') {
      const { entries, links } = madeFor(this.#of.machine, address);
      for (const path of entries)
        if (path !== this.#of.node || this.#hasNode) this.#node.tree.hide(`unbound ${address}`, path, { kind: 'absent' });
      for (const path of links) this.#node.tree.remove(`unbound ${address}`, path);
    }
    for (const link of this.#linksOf(at)) {
      this.#made.delete(link);
      rmSync(join(this.#node.root, link), { force: true });
    }
    this.#bindings[at] = 'none';
  }

  #linksOf(at: At): readonly [string, string] {
    const address = this.#of.machine.addresses[at];
    return [`${directoryOf(this.#of.machine, address)}/driver`, `sys/bus/pci/drivers/${this.#of.handing}/${address}`];
  }

  #rebind(at: At): void {
    if (this.#bindings[at] === 'own') return;
    this.story.push(`the own driver gets ${at}`);
    this.#override(at, false);
    this.#leave(at);
    this.#load();
    this.#node.tree.take(`unbound ${this.#of.machine.addresses[at]}`);
    this.#bindings[at] = 'own';
  }

  #load(): void {
    this.#isLoaded = true;
    this.#node.tree.take('unloaded');
  }

  /** By its id, or in the two steps of an administrator: first the choice, then the driver. */
  #handOver(at: At): void {
    if (this.#bindings[at] === 'handed') return;
    if (this.#choose(3) === 0) {
      this.story.push(`an administrator chooses another driver for ${at}`);
      this.#leave(at);
      this.#override(at, true);
      return;
    }
    this.story.push(`${at} is handed over`);
    this.#leave(at);
    const [driver, entry] = this.#linksOf(at);
    for (const [link, target] of [
      [driver, `../../../bus/pci/drivers/${this.#of.handing}`],
      [entry, `../../../../${directoryOf(this.#of.machine, this.#of.machine.addresses[at]).slice('sys/'.length)}`],
    ] as const) {
      mkdirSync(dirname(join(this.#node.root, link)), { recursive: true });
      symlinkSync(target, join(this.#node.root, link));
      this.#made.add(link);
    }
    this.#bindings[at] = 'handed';
  }

  #override(at: At, isOn: boolean): void {
    if (this.#overridden[at] === isOn) return;
    this.#overridden[at] = isOn;
    const directory = directoryOf(this.#of.machine, this.#of.machine.addresses[at]);
    this.#node.tree.write(`${directory}/driver_override`, () => (isOn ? `${this.#of.handing}\n` : '(null)\n'));
  }

  /** The driver tries, and cannot. */
  #failStart(at: At): void {
    if (this.#standing(at) !== 'none') return;
    this.story.push(`the start of ${at} fails`);
    this.#load();
    const { driver, addresses } = this.#of.machine;
    const [address, tree] = [addresses[at], this.#node.tree];
    if (this.#choose(2) === 0) log(tree, `${driver}: probe of ${address} failed with error -22`);
    else log(tree, `${driver} ${address}: probe with driver ${driver} failed with error -22`, ofDevice(`+pci:${address}`));
    this.#known[at].startFailed();
  }

  #toggleNode(): void {
    const { node } = this.#of;
    if (node === undefined || (this.#hasNode && this.#bindings[0] !== 'own')) return;
    this.#hasNode = !this.#hasNode;
    this.story.push(this.#hasNode ? 'the node is back' : 'the node of 0 is gone');
    if (this.#hasNode) this.#node.tree.take('no node');
    else this.#node.tree.hide('no node', node, { kind: 'absent' });
  }

  #loseBegin(): void {
    this.story.push('the begin of the log is lost');
    this.#log = 'without its begin';
    this.#node.tree.write(LOG, () => '6,7,7000,-;systemd[1]: Started a service.\n');
  }

  #toggleLog(): void {
    if (this.#log === 'without its begin') return;
    this.#log = this.#log === 'closed' ? 'whole' : 'closed';
    this.story.push(`the log is ${this.#log}`);
    if (this.#log === 'closed') this.#node.tree.hide('closed', LOG, { kind: 'absent' });
    else this.#node.tree.take('closed');
  }

  async #restart(isForgetful: boolean): Promise<void> {
    this.story.push(isForgetful ? 'kill, and the state is lost' : 'kill');
    this.#node.kill();
    if (isForgetful) this.#node.loseState();
    for (const known of this.#known) {
      if (isForgetful) known.forgotten();
      else known.killed(this.#node.clock.monotonic());
    }
    await this.#node.clock.advance(this.#choose(3) * INTERVAL_MS, () => this.#node.settle());
    await this.#node.startAgent();
    await this.#node.settle();
    for (const known of this.#known) known.started(this.#node.clock.monotonic());
  }
}
