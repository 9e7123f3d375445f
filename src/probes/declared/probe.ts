import type { Host } from '../../host/host.ts';
import { isSuspended } from '../../host/pci/pcie.ts';
import type { Collection, DeviceReport, Listing, Problem } from '../../model/collection.ts';
import type { Millis } from '../../model/duration.ts';
import { matchesAny } from '../../model/excluded.ts';
import type { Finding } from '../../model/health.ts';
import type { Probe } from '../family.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { findMonitor, hwmonRows, type MonitorSample, type Monitors, monitorsBelow, readMonitors } from '../kit/hwmon.ts';
import { RowLog } from '../kit/log-rows.ts';
import { asOf, isDue, type Pace, Pacer } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { pcieFindings } from '../kit/pcie/health.ts';
import { PcieReader, type PcieSample, pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { CredibleLimits, overTemperature } from '../kit/temperature.ts';
import { allRowsOf, conditionsOf, countersOf, type problems } from './conditions.ts';
import type { Declaration, DeclaredDevices, DeclaredSource } from './declaration.ts';
import { type DeclaredDevice, discover, hardwareOf, MOST_DEVICES, readDevice } from './discover.ts';
import { Heartbeats } from './heartbeats.ts';
import { findingsOf, limitOf, sourceOf, unknown } from './judges.ts';
import { Inheritance, withoutCircles } from './parts.ts';
import { readingsOf } from './readings.ts';
import { CommandRows } from './rows.ts';
import { type Entry, type SourceFault, SourceReader, type SourceResult } from './source-reader.ts';

type ProblemCode = (typeof problems)[number]['code'];

/** Limit of problems that one device reports. */
const MOST_PROBLEMS = 8;

export interface DeclaredOptions {
  /** Absent: all. */
  readonly include?: readonly string[];
  readonly exclude: readonly string[];
  readonly 'facts-interval': Millis;
}

interface DeviceReader extends DeclaredDevice {
  readonly identity: string | undefined;
  /** Target of the link to its driver. */
  readonly driver: string | undefined;
  readonly readAtMs: number;
  pcie?: PcieReader;
  /** Limits of temperatures that were seen; only with hardware monitors. */
  readonly limits: CredibleLimits;
  readonly beats: Heartbeats;
  monitors?: readonly Monitors[];
}

/** Reads the devices of a declaration. It has no knowledge of any hardware. */
export class DeclaredProbe implements Probe {
  readonly #host: Host;
  readonly #declaration: Declaration;
  readonly #options: DeclaredOptions;
  readonly #commands: CommandRows;
  readonly #reader: SourceReader;
  /** Absent when the family declares neither lines nor a PCIe link. */
  readonly #log: RowLog | undefined;
  /** Absent when parts do not inherit. */
  readonly #inheritance: Inheritance | undefined;
  readonly #bus: Bus;
  readonly #pacer = new Pacer();
  #pace: Pace = { nowMs: 0, graceMs: 0 };
  /** Keyed by place. */
  #kept: ReadonlyMap<string, DeviceReader> = new Map();

  /** `paths`: see {@link CommandRows}. */
  constructor(host: Host, declaration: Declaration, options: DeclaredOptions, paths: Readonly<Record<string, string>>) {
    this.#host = host;
    this.#declaration = declaration;
    this.#options = options;
    this.#commands = new CommandRows(host, declaration.commands ?? {}, paths);
    this.#reader = new SourceReader(host, this.#commands, countersOf(declaration));
    if (declaration.inherit === true) this.#inheritance = new Inheritance(conditionsOf(declaration));
    const { family, pcie } = declaration;
    const listedByBus = declaration.devices.flatMap(({ kind, find: { pci: place } }) =>
      place === undefined || place.drivers ? [] : [kind],
    );
    this.#bus = new Bus(host, { family, hardware: hardwareOf(declaration), listedByBus, pcie: pcie === true ? 'link' : 'none' });
    const lines = allRowsOf(declaration);
    if (lines.length > 0) this.#log = new RowLog(host, lines, conditionsOf(declaration));
  }

  async collect(): Promise<Collection> {
    this.#pace = this.#pacer.next(this.#host.clock.monotonic());
    await this.#commands.update(this.#pace);
    this.#reader.begin(this.#pace);
    const problems: Problem[] = [];
    const states = new Set<'complete' | 'partial' | 'absent'>();
    const kept = new Map<string, DeviceReader>();
    const found: { readonly declared: DeclaredDevices; readonly entry: Entry; readonly known: DeviceReader }[] = [];
    const ids = new Set<string>();
    for (const declared of this.#declaration.devices) {
      const discovery = discover(this.#host, declared, this.#commands);
      states.add(discovery.state);
      if (discovery.error !== undefined) problems.push(problem('place-unreadable', discovery.error));
      let isCut = discovery.isCut;
      for (const entry of discovery.entries) {
        const place = `${declared.kind} ${entry.directory ?? entry.words.name}`;
        const known = this.#know(place, declared, entry);
        if (known === undefined) {
          states.add('partial');
          if (!this.#isGone(entry)) problems.push(problem('id-unreadable', `the id of ${placeText(entry)} cannot be read`));
          continue;
        }
        kept.set(place, known);
        const { id } = known.device;
        if (!this.#isChosen(id)) continue;
        if (ids.has(id)) problems.push(problem('duplicate-id', `a second device has the id ${id}`));
        else if (ids.size >= MOST_DEVICES) isCut = true;
        else {
          ids.add(id);
          found.push({ declared, entry, known });
        }
      }
      if (isCut) {
        states.add('partial');
        problems.push(problem('too-many-devices', `more than ${MOST_DEVICES} devices match`));
      }
    }
    for (const [place, { device }] of this.#kept) if (!kept.has(place)) this.#leave(place, device.kind);
    this.#kept = kept;
    const reports = withoutCircles(
      found.flatMap(({ entry, known }) => this.#report(entry, known, problems)),
      (device, parent) => problems.push({ ...problem('parent-circle', `its parent ${parent} is a part of it`), device }),
    );
    const listed = { reports, problems: [...this.#commands.problems, ...problems], listing: listingOf(states) };
    const added = this.#bus.added(listed, this.#log);
    const own = { ...added, reports: added.reports.filter(({ device }) => this.#isChosen(device.id)) };
    const names = found.map(({ entry, known: { device } }) => [entry.words.name ?? '', device.pciAddress ?? device.id] as const);
    const all = this.#log === undefined ? own : this.#log.withLogs(own, names);
    return this.#inheritance === undefined ? all : { ...all, reports: this.#inheritance.of(all.reports) };
  }

  watch(wake: () => void): () => void {
    return this.#log?.watch(wake) ?? (() => {});
  }

  close(): void {
    this.#log?.close();
    for (const [place, { device }] of this.#kept) this.#leave(place, device.kind);
  }

  #leave(place: string, kind: string): void {
    this.#reader.forget(place.slice(kind.length + 1));
  }

  #isGone({ directory }: Entry): boolean {
    return directory !== undefined && this.#host.sys.identity(directory) === undefined;
  }

  #isChosen(id: string): boolean {
    const { include = [], exclude } = this.#options;
    return (include.length === 0 || matchesAny(include, id)) && !matchesAny(exclude, id);
  }

  /** The device of a place: the known one, or read again after a time or when another device took the place. */
  #know(place: string, declared: DeclaredDevices, entry: Entry): DeviceReader | undefined {
    const identity = entry.directory === undefined ? undefined : this.#host.sys.identity(entry.directory);
    const before = this.#kept.get(place);
    const isSame = before !== undefined && before.identity === identity && entry.directory !== undefined;
    // A driver that comes or goes changes facts.
    const driver = entry.directory === undefined ? undefined : this.#host.sys.link(`${entry.directory}/driver`);
    const isKept = isSame && before.driver === driver;
    if (isKept && !isDue(before.readAtMs, this.#options['facts-interval'], this.#pace)) return before;
    // The facts of a device do not change because a program fails.
    if (isSame && this.#commands.problems.length > 0) return before;
    if (before !== undefined && !isKept) this.#leave(place, declared.kind);
    const read = readDevice(this.#declaration.family, declared, entry, this.#reader);
    if (read === undefined) return isSame && this.#reader.hangs(entry) ? before : undefined;
    // An identity that cannot be read again is still that of the same directory.
    const isLost = isSame && read.device.identity === null && before.device.identity !== undefined;
    const known = isLost ? { ...read, device: { ...read.device, identity: before.device.identity ?? null } } : read;
    const { limits, beats } = isSame ? before : { limits: new CredibleLimits(), beats: new Heartbeats() };
    return {
      ...known,
      identity,
      driver,
      limits,
      beats,
      readAtMs: this.#pace.nowMs,
      ...(isSame && before.pcie !== undefined && { pcie: before.pcie }),
    };
  }

  #report(entry: Entry, known: DeviceReader, problems: Problem[]): DeviceReport[] {
    const { device, words } = known;
    const own = { ...entry, words };
    const results = new Map<DeclaredSource, SourceResult>();
    const faults: SourceFault[] = [];
    const read = (source: DeclaredSource): SourceResult => {
      const result = results.get(source) ?? this.#reader.read(source, own);
      if (!results.has(source)) faults.push(...result.faults);
      results.set(source, result);
      return result;
    };
    const readings = readingsOf(this.#declaration, device.kind, read, faults);
    const findings = this.#findings(entry, known, read);
    const sensors = this.#sensors(entry, known, faults);
    readings.push(...sensors.readings);
    findings.push(...sensors.temperatures.map(overTemperature));
    const pcie = this.#pcie(known);
    if (pcie !== undefined) {
      readings.push(...pcieReadings(pcie));
      findings.push(...pcieFindings(pcie));
    }
    if (entry.directory !== undefined && this.#host.sys.identity(entry.directory) !== known.identity) {
      problems.push({ ...problem('device-vanished', `/sys/${entry.directory} was found and then gone`), device: device.id });
      return [];
    }
    // What hangs is told where the reads are watched. A partial read is no basis for a verdict.
    if (this.#reader.hangs(entry)) return [{ device }];
    const told = new Map(faults.map((fault) => [fault.message, fault]));
    for (const { code, message } of [...told.values()].slice(0, MOST_PROBLEMS)) problems.push({ code, message, device: device.id });
    // Without declared values, a device is read when it is present, or when its sleeping function has a power state.
    const isPresence = results.size === 0 && (pcie === undefined ? this.#declaration.hwmon !== true : pcie.link.powerState !== undefined);
    const isRead =
      isPresence ||
      (pcie !== undefined && isAnswered(pcie)) ||
      sensors.readings.length > 0 ||
      [...results.values()].some(({ values }) => values.length > 0);
    if (isRead) return [{ device, read: { readings, findings } }];
    problems.push({ ...problem('device-unreadable', `no declared value of ${device.id} can be read`), device: device.id });
    return [{ device }];
  }

  #findings({ directory }: Entry, { device: { kind }, beats }: DeviceReader, read: (source: DeclaredSource) => SourceResult): Finding[] {
    const { readings = [], conditions = [] } = this.#declaration;
    beats.begin(this.#pace.nowMs);
    return conditions
      .filter(({ kinds, log }) => log === undefined && kinds?.includes(kind) !== false)
      .flatMap((condition) => {
        if (condition.still !== undefined && this.#sleeps(directory)) {
          beats.forget();
          return [unknown(condition, 'the device sleeps')];
        }
        const source = sourceOf(condition, readings);
        const labels = readings.find(({ metric }) => metric === condition.reading)?.labels;
        const limit = limitOf(condition);
        const { values, readMs } = read(source);
        const sight = { source, values, labels, limits: limit === undefined ? undefined : read(limit), beats };
        return asOf(findingsOf(condition, sight), readMs);
      });
  }

  /** Of a device of a class, the device below it sleeps. */
  #sleeps(directory: string | undefined): boolean {
    return [directory, `${directory}/device`].some((one) => isSuspended(this.#host.sys.reread(`${one}/power/runtime_status`).text));
  }

  /** The monitors are found again with the facts of the device. */
  #sensors({ directory }: Entry, known: DeviceReader, faults: SourceFault[]): MonitorSample {
    if (this.#declaration.hwmon !== true || directory === undefined) return { readings: [], temperatures: [] };
    const files = new DeviceFiles(this.#host.sys, directory);
    known.monitors ??= monitorsBelow(files).map((monitor) => findMonitor(files, monitor, hwmonRows));
    const samples = known.monitors.map((each) => readMonitors(files, known.limits, each, 'live'));
    const isUnread = (code: string): boolean => code === 'permission-denied' || code === 'read-failed';
    faults.push(
      ...files.problems.map(({ code, message }) => ({
        code: isUnread(code) ? ('value-unreadable' as const) : ('value-invalid' as const),
        message,
      })),
    );
    const readings = new ReadingSet();
    for (const sample of samples) readings.addAll(sample.readings);
    return { readings: readings.list(), temperatures: samples.flatMap(({ temperatures }) => temperatures) };
  }

  #pcie(known: DeviceReader): PcieSample | undefined {
    const { pciAddress, physicalFunction } = known.device;
    // A virtual function has no link of its own.
    if (this.#declaration.pcie !== true || pciAddress === undefined || physicalFunction !== undefined) return undefined;
    known.pcie ??= new PcieReader(this.#host.sys, pciAddress);
    return known.pcie.read(this.#pace);
  }
}

/** Whether the function told anything. What only the port above tells is no read of the function. */
const isAnswered = ({ answers, aer, link: { width, widthMax, generation, generationMax } }: PcieSample): boolean =>
  answers !== undefined || aer.errors.length > 0 || [width, widthMax, generation, generationMax].some((one) => one !== undefined);

function listingOf(states: ReadonlySet<Listing>): Listing {
  if (states.has('partial')) return 'partial';
  return states.has('complete') ? 'complete' : 'absent';
}

const placeText = ({ directory, words }: Entry): string => (directory === undefined ? `row ${words.name}` : `/sys/${directory}`);

const problem = (code: ProblemCode, message: string): Problem => ({ code, message });
