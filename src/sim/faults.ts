import type { FaultSpec, FaultTarget, SimulatedFault } from './family-simulation.ts';
import { isOfWholeFamily } from './fault-past.ts';

/** What one family of the node can have. */
export interface FaultyFamily {
  readonly family: string;
  readonly faults: readonly FaultSpec[];
  readonly targets: readonly FaultTarget[];
}

/** A fault of the node. */
export interface NodeFault extends SimulatedFault {
  readonly family: string;
}

/** A fault with the devices that can have it, and those that have it now. */
export interface ListedFault {
  readonly family: string;
  readonly name: string;
  readonly about: string;
  /** Whether it concerns all devices of the family, and needs no device. */
  readonly isOfWholeFamily: boolean;
  /** Ids of the devices that can have it; empty for a fault of all devices of the family. */
  readonly devices: readonly string[];
  readonly running: readonly { readonly device?: string; readonly fromMs: number }[];
}

/** A request that the node cannot meet. */
export class FaultRefusal extends Error {
  /** The name that is unknown, and those that are known; absent when no name is wrong. */
  readonly unknown: { readonly name: string; readonly known: readonly string[] } | undefined;

  constructor(problem: string, unknown?: { readonly name: string; readonly known: readonly string[] }) {
    super(problem);
    this.unknown = unknown;
  }
}

/** Hardware remembers each fault, because its counters never fall; so their number has a limit. */
const MOST_TIMES = 100;

/** The faults of a simulated node: those that run and those that ended. */
export class NodeFaults {
  readonly #families: () => readonly FaultyFamily[];
  #all: NodeFault[] = [];

  constructor(families: () => readonly FaultyFamily[]) {
    this.#families = families;
  }

  /** All faults of a family until now, in the order of their beginning. */
  of(family: string): readonly SimulatedFault[] {
    return this.#all.filter((fault) => fault.family === family);
  }

  list(): readonly ListedFault[] {
    return this.#families().flatMap(({ family, faults, targets }) =>
      faults.map((spec) => {
        const running = this.#running().filter((fault) => fault.family === family && fault.name === spec.name);
        return {
          family,
          name: spec.name,
          about: spec.about,
          isOfWholeFamily: isOfWholeFamily(spec),
          devices: targets.filter((target) => canHave(target, spec)).map(({ id }) => id),
          running: running.map(({ device, fromMs }) => ({ ...(device !== undefined && { device }), fromMs })),
        };
      }),
    );
  }

  /** Names of the devices that no new pod gets. */
  unusable(): ReadonlySet<string> {
    const names = this.#families().flatMap(({ family, faults, targets }) => {
      const fatal = new Set(faults.flatMap(({ name, isFatal }) => (isFatal === true ? [name] : [])));
      const sick = new Set(this.#running().flatMap((fault) => (fault.family === family && fatal.has(fault.name) ? [fault.device] : [])));
      return targets.flatMap((target) => (sick.has(target.id) ? deviceNames(family, target) : []));
    });
    return new Set(names);
  }

  isRunning(family: string, name: string, device: string | undefined): boolean {
    return this.#running().some((fault) => fault.family === family && fault.name === name && fault.device === device);
  }

  /** Begins a fault. A fault that runs goes on. Throws a {@link FaultRefusal} for an unknown fault or device. */
  begin(name: string, device: string | undefined, atMs: number): NodeFault {
    const found = this.#find(name, device);
    const isSame = (fault: NodeFault): boolean =>
      fault.family === found.family && fault.name === found.name && fault.device === found.device;
    const running = this.#running().find(isSame);
    if (running !== undefined) return running;
    if (this.#all.filter(isSame).length >= MOST_TIMES)
      throw new FaultRefusal(`the fault ${name} already began ${MOST_TIMES} times there; start the demo again`);
    const fault = { ...found, fromMs: atMs };
    this.#all.push(fault);
    return fault;
  }

  /** Ends all faults that run, or those of one name or one device. Returns them. */
  clear(what: string | undefined, atMs: number): readonly NodeFault[] {
    const ended = this.#running().filter((fault) => what === undefined || this.#concerns(fault, what));
    if (what !== undefined && ended.length === 0) this.#mustBeKnown(what);
    this.end(ended, atMs);
    return ended;
  }

  end(faults: readonly NodeFault[], atMs: number): void {
    this.#all = this.#all.map((fault) => (faults.includes(fault) ? { ...fault, untilMs: Math.max(atMs, fault.fromMs) } : fault));
  }

  #running(): readonly NodeFault[] {
    return this.#all.filter(({ untilMs }) => untilMs === undefined);
  }

  #find(name: string, device: string | undefined): Omit<NodeFault, 'fromMs'> {
    const families = this.#families().filter(({ targets }) => targets.length > 0);
    const known = families.filter(({ faults }) => faults.some((fault) => fault.name === name));
    if (known.length === 0) throw new FaultRefusal(`there is no fault ${name}`, { name, known: namesOf(families) });
    const ofFamily = known.find(({ faults }) => faults.some((fault) => fault.name === name && isOfWholeFamily(fault)));
    if (ofFamily !== undefined) {
      if (device !== undefined)
        throw new FaultRefusal(`the fault ${name} concerns all devices of the family ${ofFamily.family}: name no device`);
      return { family: ofFamily.family, name };
    }
    const able = known.flatMap(({ family, faults, targets }) =>
      targets
        .filter((target) => faults.some((fault) => fault.name === name && canHave(target, fault)))
        .map((target) => ({ family, target })),
    );
    const devices = able.flatMap(({ family, target }) => deviceNames(family, target));
    if (device === undefined) throw new FaultRefusal(`the fault ${name} needs a device: ${listed(able.map(({ target }) => target.id))}`);
    const found = able.find(({ family, target }) => isCalled(family, target, device));
    if (found !== undefined) return { family: found.family, name, device: found.target.id };
    const isThere = families.some(({ family, targets }) => targets.some((target) => isCalled(family, target, device)));
    if (isThere) throw new FaultRefusal(`${device} cannot have the fault ${name}; ${listed(able.map(({ target }) => target.id))} can`);
    throw new FaultRefusal(`there is no device ${device}`, { name: device, known: devices });
  }

  #concerns({ family, name, device }: NodeFault, what: string): boolean {
    if (name === what || device === what) return true;
    const target = this.#families()
      .find((known) => known.family === family)
      ?.targets.find(({ id }) => id === device);
    return target !== undefined && isCalled(family, target, what);
  }

  #mustBeKnown(what: string): void {
    const families = this.#families();
    const names = [...namesOf(families), ...families.flatMap(({ family, targets }) => targets.flatMap((one) => deviceNames(family, one)))];
    const isKnown = names.some((name) => name.toLowerCase() === what.toLowerCase());
    if (!isKnown) throw new FaultRefusal(`there is no fault and no device ${what}`, { name: what, known: names });
  }
}

const canHave = ({ kind, lacks = [] }: FaultTarget, { name, kinds }: FaultSpec): boolean => kinds.includes(kind) && !lacks.includes(name);

const namesOf = (families: readonly FaultyFamily[]): readonly string[] =>
  families.flatMap(({ faults }) => faults.map((fault) => fault.name));

const deviceNames = (family: string, { id, names = [] }: FaultTarget): readonly string[] => [id, ...names, `${family}/${id}`];

const isCalled = (family: string, target: FaultTarget, text: string): boolean =>
  deviceNames(family, target).some((name) => name.toLowerCase() === text.toLowerCase());

const MOST_NAMED = 4;

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'no device of this demo';
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : '';
  return names.slice(0, MOST_NAMED).join(', ') + more;
}
