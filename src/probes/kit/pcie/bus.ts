import type { Host } from '../../../host/host.ts';
import { BusFunctions, type FunctionOnBus } from '../../../host/pci/functions.ts';
import { vfioNodeOf } from '../../../host/pci/pci.ts';
import { isSuspended } from '../../../host/pci/pcie.ts';
import type { Collection, DeviceRead, DeviceReport } from '../../../model/collection.ts';
import type { BusHardware } from '../../../model/declaration.ts';
import { defined } from '../../../model/defined.ts';
import type { Device } from '../../../model/device.ts';
import type { Finding } from '../../../model/health.ts';
import { type Pace, Pacer } from '../pace.ts';
import {
  hasNodes,
  isHandedOver,
  isNotInUse,
  isNotStarted,
  isUnbound,
  isUnboundIfHeld,
  isWithoutDriver,
  lacksNode,
  served,
  startFailed,
  whole,
  withFindings,
} from './bus-conditions.ts';
import { readPciFunction } from './function.ts';
import { pcieErrorFindings, pcieFindings } from './health.ts';
import { PcieReader, pcieErrorReadings, pcieReadings } from './pcie.ts';
import { isHanding, type Standing, standingOf } from './standing.ts';
import type { StartLog } from './start-log.ts';

/** What one collection found. */
interface Look {
  /** Models of which a function has a driver. */
  readonly bound: ReadonlySet<string>;
  /** Cards of which a function has one. */
  readonly cards: ReadonlySet<string>;
  readonly log: StartLog | undefined;
  readonly pace: Pace;
}

interface Of {
  readonly family: string;
  readonly hardware: readonly BusHardware[];
  /** Kinds of which the family lists a function with and without a driver. */
  readonly listedByBus?: readonly string[];
  /** A container can have a function that was handed over. */
  readonly servesUserSpace?: true;
  /** The family has a condition of its own for the nodes of its devices. */
  readonly hasOwnNodes?: true;
  /** What the family reports of PCIe: all, errors without the link, nothing. */
  readonly pcie: 'link' | 'errors' | 'none';
}

/**
 * What the bus tells of the devices of a family: it adds the functions that have no driver of the family, and says of each why. A device
 * that was known keeps its name and its parts, whoever has it now.
 */
export class Bus {
  readonly #host: Host;
  readonly #of: Of;
  readonly #functions: BusFunctions;
  readonly #pacer = new Pacer();
  readonly #pcie = new Map<string, PcieReader>();
  /** Known devices by id, without those whose function left the bus. */
  #known: ReadonlyMap<string, Device>;
  /** Addresses of functions that somebody used, now or before. */
  readonly #used: Set<string>;
  /** Places of the devices of which this or an earlier probe may have told that they have no driver. */
  readonly #told: Set<string>;
  /** The first state of each place that this probe told. */
  readonly #first = new Map<string, string | undefined>();
  /** Addresses with a failed start that had a driver at the last collection; undefined before the log was read. */
  #revived: ReadonlySet<string> | undefined;

  constructor(host: Host, of: Of) {
    this.#host = host;
    this.#of = of;
    this.#functions = new BusFunctions(host.sys, of.hardware);
    this.#known = new Map(host.known.map((device) => [device.id, device]));
    this.#used = new Set(host.known.flatMap((device) => (isRoot(device) && wasUsed(device) ? [device.pciAddress as string] : [])));
    this.#told = new Set(host.known.map(placeOf));
  }

  added(collection: Collection, log?: StartLog): Collection {
    const nowMs = this.#host.clock.monotonic();
    const functions = this.#functions.read(nowMs);
    const pace = this.#pacer.next(nowMs);
    const judged = new Map(functions.map((each) => [each.address, { each, standing: standingOf(each) }]));
    const bound = new Set([...judged.values()].flatMap(({ each, standing }) => (standing.is === 'served' ? [each.model] : [])));
    for (const [address, { standing }] of judged) if (standing.is === 'served' || standing.is === 'handed-over') this.#used.add(address);
    if (functions.length > 0) log?.follow([...collection.reports.map(({ device }) => device), ...this.#known.values()]);
    if (log?.end !== undefined) this.#endFailures(judged, log);
    const isListed = new Set<string>();
    const own = collection.reports.map((report): DeviceReport => {
      const found = isRoot(report.device) ? judged.get(report.device.pciAddress ?? '') : undefined;
      if (found === undefined) return report;
      isListed.add(found.each.address);
      return this.#listed(report, found.each, found.standing, bound, log);
    });
    const cards = new Set([...judged].flatMap(([address, { standing }]) => (standing.is === 'served' ? [slotOf(address)] : [])));
    const others = [...judged.values()].flatMap(({ each, standing }): DeviceReport[] =>
      isListed.has(each.address) ? [] : this.#unlisted(each, standing, { bound, cards, log, pace }),
    );
    const all = [...own, ...others];
    const isAway = ({ device }: DeviceReport): boolean =>
      isRoot(device) && (judged.get(device.pciAddress ?? '')?.standing.is ?? 'served') !== 'served';
    const away = new Map(all.filter(isAway).map((report) => [report.device.id, report]));
    const reports = [...all, ...this.#parts(all, away)];
    this.#remember(reports, judged);
    const isAbsent = collection.listing === 'absent' && others.length > 0;
    return { ...collection, reports, ...(isAbsent && { listing: 'complete' }) };
  }

  /** A device of the family itself: it has a driver, or the family lists it without one. */
  #listed(report: DeviceReport, each: FunctionOnBus, standing: Standing, bound: ReadonlySet<string>, log?: StartLog): DeviceReport {
    const { device, read } = report;
    if (standing.is === 'served' || (standing.is === 'unbound' && this.#hasDriver(each, device))) {
      const nodes = this.#nodes(each, device);
      const findings = [...(this.#told.has(placeOf(device)) || this.#first.has(placeOf(device)) ? served : []), ...nodes];
      return read === undefined || findings.length === 0 ? report : { ...report, read: withFindings(read, findings) };
    }
    // The family says by other sources why it did not read the device.
    if (read === undefined) return report;
    const { unserved, findings, isDoubtful } = this.#judge(each, standing, bound, log);
    const wasTold = this.#tell(placeOf(device), findings);
    const isForUserSpace = standing.is === 'handed-over' && this.#of.servesUserSpace === true;
    const whose = unserved === undefined || isForUserSpace ? device : { ...device, unserved };
    if (isDoubtful === true) return { device: whose, ...defined({ outOfBand: report.outOfBand }) };
    return { ...report, device: whose, read: withFindings(read, whole(findings, wasTold)) };
  }

  /** Returns whether another state of the place had been told before. */
  #tell(place: string, [finding]: readonly Finding[]): boolean {
    const first = this.#first.has(place) ? this.#first.get(place) : finding?.type;
    this.#first.set(place, first);
    if (first !== finding?.type) this.#told.add(place);
    return this.#told.has(place);
  }

  /** A driver that made something of the function is bound, also where the links of sysfs are not visible. */
  #hasDriver({ hardware: { drivers, nodes = 0 } }: FunctionOnBus, { kind, characterDevices = [] }: Device): boolean {
    if (this.#of.listedByBus?.includes(kind) !== true) return true;
    // The node of VFIO has the number of the group, which the function has without a driver, too.
    return drivers?.some(isHanding) !== true && nodes > 0 && characterDevices.length >= nodes;
  }

  /** A function that the family does not list. */
  #unlisted(each: FunctionOnBus, standing: Standing, { bound, cards, log, pace }: Look): DeviceReport[] {
    const { address, hardware } = each;
    const isKnown = this.#used.has(address);
    if (standing.is === 'served' || (standing.is === 'other' && !isKnown)) return [];
    const { unserved, findings, isDoubtful } = this.#judge(each, standing, bound, log);
    const isFailed = log?.holds(address, startFailed) === true;
    if (hardware.isListedByFault === true && !isFailed && !this.#knownAt(address)) return [];
    // A function of a card whose main function has a driver is for a design of its user, who loads a driver for it.
    if (unserved === 'not-in-use' && cards.has(slotOf(address))) return [];
    const device = this.#deviceOf(each, standing, unserved);
    const wasTold = this.#tell(address, findings);
    if (isDoubtful === true) return [{ device }];
    const pcie = this.#pcieOf(address, pace);
    return [{ device, read: { readings: pcie.readings, findings: [...whole(findings, wasTold), ...pcie.findings] } }];
  }

  /** `isDoubtful`: nobody can say whether a start failed. */
  #judge(
    { address, hardware, model }: FunctionOnBus,
    standing: Standing,
    bound: ReadonlySet<string>,
    log: StartLog | undefined,
  ): { readonly unserved?: NonNullable<Device['unserved']>; readonly findings: readonly Finding[]; readonly isDoubtful?: boolean } {
    if (standing.is === 'handed-over')
      return { unserved: 'handed-over', findings: [isHandedOver(standing.to, vfioNodeOf(this.#host.sys, address))] };
    const used = this.#used.has(address);
    if (standing.is === 'other') return used ? { unserved: 'unbound', findings: [isUnbound(address, standing.to)] } : { findings: [] };
    if (used) return { unserved: 'unbound', findings: [isUnbound(address)] };
    if (bound.has(model)) return { unserved: 'not-started', findings: [isNotStarted(address)] };
    if (hardware.isAlwaysWanted === true) return { unserved: 'not-started', findings: [isWithoutDriver(address)] };
    if (log?.holds(address, startFailed) === true) return { unserved: 'not-started', findings: [] };
    const isLoaded = hardware.drivers?.some((driver) => this.#host.sys.exists(`bus/pci/drivers/${driver}`)) ?? true;
    return {
      unserved: 'not-in-use',
      findings: [isNotInUse, isUnboundIfHeld(address)],
      isDoubtful: isLoaded && log !== undefined && log.reach !== 'whole',
    };
  }

  /**
   * A driver whose start failed may be bound for a moment, so a failure ends only when the device keeps its driver. A log that was not read
   * before also tells of failures of long ago, which ended when the device has a driver: another failure would have another line.
   */
  #endFailures(judged: ReadonlyMap<string, { readonly standing: Standing }>, log: StartLog): void {
    const isKept = (is: Standing['is']): boolean => is === 'served' || is === 'handed-over';
    const revived = [...judged].flatMap(([address, { standing }]) =>
      isKept(standing.is) && log.holds(address, startFailed) ? [address] : [],
    );
    for (const address of revived)
      if (this.#revived?.has(address) !== false) log.end?.(address, startFailed, 'a driver has the device since');
    this.#revived = log.reach === 'unread' ? undefined : new Set(revived);
  }

  /** Only a directory in which the agent sees a node shows that another one is missing. */
  #nodes({ address, hardware: { nodes = 0 } }: FunctionOnBus, { characterDevices = [] }: Device): readonly Finding[] {
    if (this.#of.hasOwnNodes === true) return [];
    if (characterDevices.length < nodes) return this.#lacking(address, undefined);
    const { dev } = this.#host;
    const missing = characterDevices.find((path) => {
      const [, directory, name, stem] = /^\/dev\/(?:(.+)\/)?(([a-z_]*)[^/]*)$/.exec(path) ?? [];
      // A directory is of its subsystem. In /dev itself only the nodes of the same name and another number are.
      if (name === undefined || (directory === undefined && nodes === 0)) return false;
      const isLike = (other: string): boolean => (directory === undefined ? other.replace(/\d+$/, '') === stem : !other.startsWith('.'));
      return !dev.exists(directory === undefined ? name : `${directory}/${name}`) && dev.list(directory ?? '.').some(isLike);
    });
    if (missing !== undefined) return this.#lacking(address, missing);
    return this.#told.has(address) ? [hasNodes] : [];
  }

  #lacking(address: string, path: string | undefined): readonly Finding[] {
    this.#told.add(address);
    return [lacksNode(path)];
  }

  #knownAt(address: string): Device | undefined {
    return [...this.#known.values()].find((device) => isRoot(device) && device.pciAddress === address);
  }

  #deviceOf({ address, hardware }: FunctionOnBus, { is }: Standing, unserved: Device['unserved']): Device {
    const { sys } = this.#host;
    const { physicalFunction: _, driver, ...pci } = readPciFunction(sys, address);
    const node = is === 'handed-over' ? vfioNodeOf(sys, address) : undefined;
    const {
      driver: __,
      characterDevices: ___,
      unserved: ____,
      ...known
    } = this.#knownAt(address) ?? {
      ...{ family: this.#of.family, id: address, kind: hardware.kind, aliases: [] },
      ...defined({ vendor: hardware.maker }),
    };
    return {
      ...known,
      ...pci,
      ...defined({ driver, unserved, characterDevices: node === undefined ? undefined : ['/dev/vfio/vfio', node] }),
    };
  }

  /** The parts of devices that no driver of the family has: they are where their device is. */
  #parts(reports: readonly DeviceReport[], away: ReadonlyMap<string, DeviceReport>): readonly DeviceReport[] {
    if (away.size === 0) return [];
    const isReported = new Set(reports.map(({ device }) => device.id));
    return [...this.#known.values()].flatMap((part): DeviceReport[] => {
      const whole = away.get(part.parent ?? '');
      if (whole === undefined || isReported.has(part.id)) return [];
      this.#first.set(placeOf(part), undefined);
      const findings = whole.read?.findings.filter(({ type }) => OF_PARTS.has(type)) ?? [];
      const device = { ...part, unserved: whole.device.unserved ?? 'handed-over' };
      return [{ device, ...(whole.read !== undefined && { read: { readings: [], findings } }) }];
    });
  }

  /** An idle function of `vfio-pci` sleeps, and a read of its link would wake it. */
  #pcieOf(address: string, pace: Pace): Pick<DeviceRead, 'readings' | 'findings'> {
    const { sys } = this.#host;
    const isAsleep = isSuspended(sys.reread(`bus/pci/devices/${address}/power/runtime_status`).text);
    if (this.#of.pcie === 'none' || isAsleep) return { readings: [], findings: [] };
    const reader = this.#pcie.get(address) ?? new PcieReader(sys, address);
    this.#pcie.set(address, reader);
    const sample = reader.read(pace);
    return this.#of.pcie === 'link'
      ? { readings: pcieReadings(sample), findings: pcieFindings(sample) }
      : { readings: pcieErrorReadings(sample), findings: pcieErrorFindings(sample) };
  }

  #remember(reports: readonly DeviceReport[], onBus: ReadonlyMap<string, unknown>): void {
    const known = new Map(reports.map(({ device }) => [device.id, device]));
    const isTaken = new Set([...known.values()].flatMap((device) => (isRoot(device) ? [device.pciAddress] : [])));
    for (const device of this.#known.values())
      if (isRoot(device) && onBus.has(device.pciAddress ?? '') && !isTaken.has(device.pciAddress)) known.set(device.id, device);
    this.#known = known;
    for (const address of this.#used) if (!onBus.has(address)) this.#used.delete(address);
    for (const address of this.#pcie.keys()) if (!onBus.has(address)) this.#pcie.delete(address);
  }
}

const slotOf = (address: string): string => address.slice(0, -1);

/** Conditions of a device that hold for its parts. */
const OF_PARTS: ReadonlySet<string> = new Set(served.map(({ type }) => type));

/** A device that is its PCI function, and no part of one. */
const isRoot = ({ pciAddress, parent, physicalFunction, sfNumber }: Device): boolean =>
  pciAddress !== undefined && parent === undefined && physicalFunction === undefined && sfNumber === undefined;

/** The name of a device may change with its driver. */
const placeOf = (device: Device): string => (isRoot(device) ? (device.pciAddress as string) : device.id);

/** Whether a saved device had a driver. */
const wasUsed = ({ driver, unserved }: Device): boolean =>
  unserved === undefined ? driver !== undefined : unserved === 'handed-over' || unserved === 'unbound';
