import type { Host } from '../../host/host.ts';
import { readAer } from '../../host/pci/pcie.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Probe } from '../family.ts';
import { AdapterSensors } from '../kit/adapter-sensors.ts';
import { unlisted } from '../kit/device-files.ts';
import { LastIdentities } from '../kit/identities.ts';
import { RowLog } from '../kit/log-rows.ts';
import { nicLogRows } from '../kit/network-drivers.ts';
import { IntervalCache, type Pace, Pacer } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { cardFaults, pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { PcieReader, type PcieSample, pcieErrorReadings, pcieReadings } from '../kit/pcie/pcie.ts';
import { conditions, portFindings, virtualFindings } from './conditions.ts';
import { type Counters, readInterface } from './counters.ts';
import type { NetdevOptions, ProblemCode } from './declaration.ts';
import { bus, deviceOf, isReported, type NetworkFunction, PCI, type Survey, survey } from './discover.ts';
import { Card, type CardReadResult, LinkSource } from './link-source.ts';
import { COUNTERS } from './metrics.ts';
import { Port, type PortSample } from './port.ts';
import { physicalReadings, virtualReadings } from './readings.ts';

/** A physical function in one collection, whether it is reported or only needed for its virtual functions. */
interface CardRead {
  readonly ports: readonly PortSample[];
  readonly card: CardReadResult;
  readonly pcie: PcieSample | undefined;
  readonly sensors: ReturnType<AdapterSensors['read']> | undefined;
}

const NO_CARD: CardReadResult = { functions: new Map() };

export class NetdevProbe implements Probe {
  readonly #host: Host;
  readonly #options: NetdevOptions;
  readonly #identities: LastIdentities;
  readonly #source: LinkSource;
  readonly #classes = new Map<string, boolean>();
  readonly #cards = new Map<string, Card>();
  readonly #pacer = new Pacer();
  readonly #log: RowLog;
  readonly #bus: Bus;
  readonly #ports = new Map<string, readonly Port[]>();
  readonly #pcie = new Map<string, PcieReader>();
  readonly #sensors = new Map<string, AdapterSensors>();
  /** Physical functions that had virtual functions. */
  readonly #hadFunctions = new Set<string>();
  /** Virtual functions whose counters come from their own interface. They keep that source while the host has the interface. */
  readonly #withOwnCounters = new Set<string>();
  readonly #survey = new IntervalCache<{ readonly survey: Survey; readonly key: string }>();

  constructor(host: Host, options: NetdevOptions) {
    this.#host = host;
    this.#options = options;
    this.#identities = new LastIdentities(host.known);
    this.#source = new LinkSource(host, options);
    this.#bus = new Bus(host, { family: 'netdev', hardware: bus, listedByBus: ['pf', 'function'], servesUserSpace: true, pcie: 'link' });
    this.#log = new RowLog(host, [...nicLogRows, ...pcieLogRows], [...Object.values(conditions), ...pcieLogConditions]);
  }

  close(): void {
    this.forget();
    this.#log.close();
  }

  watch(wake: () => void): () => void {
    return this.#log.watch(wake);
  }

  forget(): void {
    for (const address of this.#ports.keys()) this.#host.sys.forget(`${PCI}/${address}`);
    this.#ports.clear();
    this.#pcie.clear();
    this.#sensors.clear();
    this.#classes.clear();
    this.#survey.forget();
    this.#source.close();
  }

  async collect(): Promise<Collection> {
    return this.#log.withLogs(this.#bus.added(await this.#collect(), this.#log));
  }

  async #collect(): Promise<Collection> {
    const { sys, clock } = this.#host;
    const { names, error } = sys.listing(PCI);
    if (names === undefined) {
      this.forget();
      return unlisted(PCI, error);
    }
    const pace = this.#pacer.next(clock.monotonic());
    const found = this.#surveyed(names, pace);
    const { functions, unreadable } = found;
    for (const { address, virtualFunctions } of functions.values()) if (virtualFunctions > 0) this.#hadFunctions.add(address);
    const reported = [...functions.values()].filter((fn) => isReported(fn, this.#options, this.#hadFunctions.has(fn.address)));
    const physical = new Set(reported.map(({ kind, address, physicalFunction }) => (kind === 'vf' ? physicalFunction : address)));
    const problems: Problem[] = unreadable.map((address) => problem('class-unreadable', `/sys/${PCI}/${address}/class cannot be read`));
    const reads = new Map<string, CardRead>();
    for (const address of physical) {
      const fn = functions.get(address ?? '');
      if (fn !== undefined) reads.set(fn.address, await this.#read(fn, functions, pace));
    }
    this.#forget(reads);
    const isKnown = new Set(reported.map(({ address }) => address));
    for (const [address, { ports, card }] of reads) {
      const at = isKnown.has(address) ? { device: address } : {};
      if (card.problem !== undefined) problems.push({ ...card.problem, ...at });
      for (const { hangs, isUp, interfaceName } of ports) {
        if (hangs) problems.push({ ...problem('interface-hangs', `an earlier read of the interface ${interfaceName} still hangs`), ...at });
        else if (isUp === undefined)
          problems.push({ ...problem('link-unreadable', `carrier and flags of the interface ${interfaceName} hold no state`), ...at });
      }
    }
    const reports = reported.map((fn) =>
      fn.kind === 'vf'
        ? this.#virtualReport(fn, found, reads, isKnown)
        : physicalReport(deviceOf(fn, false, this.#identityOf(fn)), fn, reads.get(fn.address)),
    );
    return { reports, problems, listing: unreadable.length === 0 ? 'complete' : 'partial' };
  }

  #surveyed(names: readonly string[], pace: Pace): Survey {
    const key = names.join(' ');
    const isSame = (kept: { readonly key: string }): boolean =>
      kept.key === key && [...this.#ports.values()].flat().every((port) => port.isThere());
    const read = () => {
      for (const ports of this.#ports.values()) for (const port of ports) port.readFacts();
      return { key, survey: survey(this.#host.sys, names, this.#classes) };
    };
    return this.#survey.of(pace, this.#options['facts-interval'], read, isSame).survey;
  }

  async #read(fn: NetworkFunction, functions: ReadonlyMap<string, NetworkFunction>, pace: Pace): Promise<CardRead> {
    const ports = this.#portsOf(fn);
    const samples = ports.map((port) => port.read());
    const hangs = samples.some((sample) => sample.hangs);
    const card = hangs || fn.virtualFunctions === 0 ? NO_CARD : await this.#readCard(fn, functions, ports[0]);
    const pcie = this.#pcie.get(fn.address) ?? new PcieReader(this.#host.sys, fn.address);
    this.#pcie.set(fn.address, pcie);
    const sensors = this.#sensors.get(fn.address) ?? new AdapterSensors(this.#host.sys, fn.address);
    this.#sensors.set(fn.address, sensors);
    const link = pcie.read(pace);
    return { ports: samples, card, pcie: link, sensors: hangs || link.link.isAsleep ? undefined : sensors.read(pace) };
  }

  #portsOf(fn: NetworkFunction): readonly Port[] {
    const before = this.#ports.get(fn.address) ?? [];
    const isSame = before.map(({ interfaceName }) => interfaceName).join(' ') === fn.interfaces.join(' ');
    if (isSame && before.every((port) => port.isThere())) return before;
    this.#host.sys.forget(`${PCI}/${fn.address}`);
    const ports = fn.interfaces.map((name) => new Port(this.#host.sys, `${PCI}/${fn.address}`, name));
    for (const port of ports) port.readFacts();
    this.#ports.set(fn.address, ports);
    return ports;
  }

  async #readCard(
    { address }: NetworkFunction,
    functions: ReadonlyMap<string, NetworkFunction>,
    port: Port | undefined,
  ): Promise<CardReadResult> {
    const card = this.#cards.get(address) ?? new Card(this.#host.sys, `${PCI}/${address}`);
    this.#cards.set(address, card);
    const one = port?.identify();
    const own = [...functions.values()].filter((fn) => fn.physicalFunction === address && isReported(fn, this.#options));
    const numbers = own.flatMap(({ number }) => (number === undefined ? [] : [number]));
    return await card.read(this.#source, one && { ...one, pciAddress: address }, numbers);
  }

  #identityOf({ address, permanentMac }: NetworkFunction): Pick<Device, 'identity'> {
    return this.#identities.of(address, permanentMac === undefined ? undefined : `${permanentMac} ${address}`);
  }

  #virtualReport(
    fn: NetworkFunction,
    { functions, unreadable }: Survey,
    reads: ReadonlyMap<string, CardRead>,
    isKnown: ReadonlySet<string>,
  ): DeviceReport {
    const parent = fn.physicalFunction ?? '';
    const owner = functions.get(parent);
    const card = owner === undefined ? undefined : this.#identityOf(owner).identity;
    // The address of a virtual function is a setting, so it is identified by its place on the card.
    const identity = this.#identities.of(fn.address, typeof card === 'string' ? `${card} ${fn.address}` : undefined);
    const device = deviceOf(fn, isKnown.has(parent), identity);
    const above = reads.get(parent);
    // What the physical function would tell is unknown, and without it a virtual function would look sound.
    if (unreadable.includes(parent) || above?.ports.some(({ hangs }) => hangs)) return { device };
    const fromParent = fn.number === undefined ? undefined : above?.card.functions.get(fn.number);
    const { settings = {} } = fromParent ?? {};
    const counters = this.#countersOf(fn, fromParent?.counters);
    const port = above?.ports[0];
    const representor = fn.number === undefined ? undefined : functions.get(parent)?.representors.get(fn.number);
    const errors = fn.hasErrorCounters ? { aer: readAer(this.#host.sys, fn.address) } : undefined;
    const own = errors === undefined ? [] : pcieErrorFindings(errors);
    const readings = virtualReadings(defined({ fn, settings, counters, port, representor }));
    return {
      device,
      read: {
        readings: [...readings, ...(errors === undefined ? [] : pcieErrorReadings(errors))],
        findings: [...virtualFindings(parent, port, settings), ...own, ...cardFaults(above?.pcie, parent, own)],
      },
    };
  }

  /** The counters of the own interface are used only while the physical function gives none. */
  #countersOf({ address, interfaces: [name] }: NetworkFunction, fromParent: Counters | undefined): Counters | undefined {
    if (fromParent !== undefined && !this.#withOwnCounters.has(address)) return fromParent;
    const own = name === undefined ? undefined : readInterface(this.#host.sys, `${PCI}/${address}/net/${name}`, COUNTERS, 'read');
    if (own === undefined) this.#withOwnCounters.delete(address);
    else this.#withOwnCounters.add(address);
    return own ?? fromParent;
  }

  /** Removes what belongs to functions that are no longer read. */
  #forget(reads: ReadonlyMap<string, unknown>): void {
    for (const address of this.#ports.keys()) if (!reads.has(address)) this.#host.sys.forget(`${PCI}/${address}`);
    for (const kept of [this.#ports, this.#cards, this.#pcie, this.#sensors]) {
      for (const address of kept.keys()) if (!reads.has(address)) kept.delete(address);
    }
  }
}

function physicalReport(device: Device, fn: NetworkFunction, read: CardRead | undefined): DeviceReport {
  if (read === undefined || read.ports.some(({ hangs }) => hangs)) return { device };
  const { ports, pcie, sensors = { readings: [], findings: [] } } = read;
  const [link, faults] = pcie === undefined ? [[], []] : [pcieReadings(pcie), pcieFindings(pcie)];
  return {
    device,
    read: {
      readings: [...physicalReadings(fn, ports), ...link, ...sensors.readings],
      findings: [...portFindings(ports), ...faults, ...sensors.findings],
    },
  };
}

const problem = (code: ProblemCode, message: string) => ({ code, message });
