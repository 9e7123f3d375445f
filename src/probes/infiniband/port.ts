import type { ReadResult } from '../../host/fs/tree.ts';
import type { KeptFile, KeptGroup } from '../../host/kept-group.ts';
import { TextFiles } from '../../host/text-files.ts';
import type { Reading } from '../../model/metric.ts';
import { metrics } from './metrics.ts';
import {
  PHYSICAL_STATE_NAMES,
  type PhysicalState,
  PORT_STATE_NAMES,
  type PortState,
  parseLid,
  parsePhysicalState,
  parsePortState,
  parseRate,
  type Rate,
} from './parse.ts';

/** What a port says of itself now. Each file is a question of its own to the firmware, so two of them need not agree. */
export interface PortLevel {
  readonly state: PortState | undefined;
  readonly physicalState: PhysicalState | undefined;
  readonly rate: Rate | undefined;
  /** Errno name when `state` could not be read; `EBADMSG` when it reads as text that is no state. */
  readonly error: string | undefined;
}

export const NOTHING_SAID: PortLevel = { state: undefined, physicalState: undefined, rate: undefined, error: undefined };

/** What changes rarely, read at a slow pace. */
export interface PortFacts {
  /** `InfiniBand`, `Ethernet` (RoCE), `Unknown`. */
  readonly linkLayer?: string;
  readonly netdev?: string;
  readonly lid?: number;
  /** 0 on an InfiniBand port: no subnet manager has spoken to it. */
  readonly smLid?: number;
}

const BYTES_PER_GIGABIT = 125_000_000;

/** Reads what a port says of itself; the same object as long as it says the same. */
export class PortLevelReader {
  readonly #files: KeptGroup;
  readonly #state: KeptFile;
  readonly #physicalState: KeptFile;
  readonly #rate: KeptFile;
  /** Of the three files, as long as the group gives the same objects. */
  #said: readonly ReadResult[] = [];
  #level = NOTHING_SAID;

  constructor(files: KeptGroup, directory: string) {
    this.#files = files;
    this.#state = files.file(`${directory}/state`);
    this.#physicalState = files.file(`${directory}/phys_state`);
    this.#rate = files.file(`${directory}/rate`);
  }

  read(): PortLevel {
    const state = this.#files.text(this.#state);
    if (state.error !== undefined) {
      this.#said = [];
      if (this.#level.error !== state.error) this.#level = { ...NOTHING_SAID, error: state.error };
      return this.#level;
    }
    const physical = this.#files.text(this.#physicalState);
    const rate = this.#files.text(this.#rate);
    const [stateBefore, physicalBefore, rateBefore] = this.#said;
    if (state === stateBefore && physical === physicalBefore && rate === rateBefore) return this.#level;
    this.#said = [state, physical, rate];
    const parsed = parsePortState(state.text);
    const level = {
      state: parsed,
      physicalState: parsePhysicalState(physical.text ?? ''),
      rate: parseRate(rate.text ?? ''),
      error: parsed === undefined ? 'EBADMSG' : undefined,
    };
    if (!isSameLevel(level, this.#level)) this.#level = level;
    return this.#level;
  }
}

function isSameLevel(a: PortLevel, b: PortLevel): boolean {
  return (
    a.state === b.state &&
    a.physicalState === b.physicalState &&
    a.error === b.error &&
    a.rate?.gigabits === b.rate?.gigabits &&
    a.rate?.lanes === b.rate?.lanes &&
    a.rate?.speed === b.rate?.speed
  );
}

/** Reads the facts of a port; the same object as long as they are the same. */
export class PortFactsReader {
  readonly #files: TextFiles;
  #netdev: string | undefined;
  #facts: PortFacts | undefined;

  constructor(files: KeptGroup, directory: string) {
    this.#files = new TextFiles(files, directory, ['link_layer', 'lid', 'sm_lid']);
  }

  /** `netdev`: the network interface of the port, where it has one. */
  read(netdev: string | undefined): PortFacts {
    const isOther = this.#files.read();
    if (this.#facts === undefined || isOther || netdev !== this.#netdev) this.#facts = portFacts(this.#files.texts(), netdev);
    this.#netdev = netdev;
    return this.#facts;
  }
}

function portFacts(texts: readonly (string | undefined)[], netdev: string | undefined): PortFacts {
  const [linkLayer, lid = '', smLid = ''] = texts.map((text) => text?.trim());
  const [ownLid, managerLid] = [parseLid(lid), parseLid(smLid)];
  return {
    ...(linkLayer && { linkLayer }),
    ...(netdev && linkLayer === 'Ethernet' && { netdev }),
    ...(ownLid !== undefined && { lid: ownLid }),
    ...(managerLid !== undefined && { smLid: managerLid }),
  };
}

/** True when a port carries traffic; undefined when it does not say. */
export function isPortUp(level: PortLevel): boolean | undefined {
  return level.state === undefined ? undefined : level.state === 'active' && (level.physicalState ?? 'link_up') === 'link_up';
}

export function portReadings(port: string, level: PortLevel, facts: PortFacts): Reading[] {
  const labels = { port };
  const readings: Reading[] = [];
  const isUp = isPortUp(level);
  if (isUp !== undefined) readings.push({ metric: metrics.linkUp.name, labels, value: isUp ? 1 : 0 });
  if (level.rate !== undefined) {
    readings.push({ metric: metrics.linkSpeed.name, labels, value: level.rate.gigabits * BYTES_PER_GIGABIT });
    if (level.rate.lanes !== undefined) readings.push({ metric: metrics.linkWidth.name, labels, value: level.rate.lanes });
  }
  readings.push({ metric: metrics.portInfo.name, labels: { port, ...infoLabels(level, facts) }, value: 1 });
  readings.push(...stateSet(metrics.portState.name, port, PORT_STATE_NAMES, level.state));
  readings.push(...stateSet(metrics.portPhysicalState.name, port, PHYSICAL_STATE_NAMES, level.physicalState));
  return readings;
}

function infoLabels(level: PortLevel, facts: PortFacts): Readonly<Record<string, string>> {
  return {
    link_layer: facts.linkLayer ?? '',
    netdev: facts.netdev ?? '',
    rate: rateWord(level.rate),
    lid: facts.lid === undefined ? '' : String(facts.lid),
    sm_lid: facts.smLid === undefined ? '' : String(facts.smLid),
  };
}

/** `4X NDR`, as people say it. */
export function rateWord(rate: Rate | undefined): string {
  if (rate?.lanes === undefined) return '';
  return rate.speed === undefined ? `${rate.lanes}X` : `${rate.lanes}X ${rate.speed}`;
}

function stateSet(metric: string, port: string, states: readonly string[], current: string | undefined): Reading[] {
  if (current === undefined) return [];
  return states.map((state) => ({ metric, labels: { port, state }, value: state === current ? 1 : 0 }));
}
