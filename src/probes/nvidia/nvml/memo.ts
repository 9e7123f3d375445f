import type { DeviceProcess } from '../../../model/collection.ts';
import type { Finding } from '../../../model/health.ts';
import type { Reading } from '../../../model/metric.ts';
import type { Shown } from '../devices.ts';
import type { Element } from '../document.ts';
import type { Field } from '../fields.ts';
import { temperatureFindings } from '../findings.ts';
import type { Told } from '../readings.ts';
import { CHANGE, changeAt } from './changes.ts';
import type { Values } from './getter.ts';

/** A reading that is the number at a path, and its place in the list. */
interface NumberAt {
  readonly path: string;
  readonly at: number;
}

/**
 * Keeps what was made of one element's values, and makes it again only when one of them changed that it depends on. Readings of fields
 * are made from the numbers directly.
 */
export class ElementMemo {
  readonly #values: Values;
  readonly #fields: readonly Field[];
  /** Of rounds that nobody has asked of yet. */
  #change: number = CHANGE.other;
  #told: Told | undefined;
  /** Readings that no element tells, which stand after the others. */
  #more: readonly (readonly Reading[])[] = [];
  #own = 0;
  #numbers: readonly NumberAt[] = [];
  #findings: readonly Finding[] | undefined;
  #comparisons: readonly Finding[] | undefined;
  #shown: Shown | undefined;
  #surroundings: string | undefined;
  #processes: readonly DeviceProcess[] | undefined;

  constructor(values: Values, fields: readonly Field[]) {
    this.#values = values;
    this.#fields = fields;
  }

  /** After each round. `change`: bits of what it changed. */
  begin(change: number): void {
    this.#change = change;
    if ((change & CHANGE.other) === 0) return;
    this.#told = this.#findings = this.#comparisons = this.#shown = this.#processes = undefined;
  }

  /** `more`: lists of readings that no element tells. */
  told(compute: () => Told, more: readonly (readonly Reading[])[]): Told {
    if (this.#told === undefined) {
      const told = compute();
      this.#own = told.readings.length;
      this.#compile(told.readings);
      this.#more = more;
      this.#told = { ...told, readings: [...told.readings, ...more.flat()] };
    } else if (more.length !== this.#more.length || more.some((list, index) => list !== this.#more[index])) {
      this.#more = more;
      this.#told = { ...this.#told, readings: [...this.#told.readings.slice(0, this.#own), ...more.flat()] };
    }
    return (this.#change & (CHANGE.numbers | CHANGE.temperature | CHANGE.judged)) === 0 ? this.#told : this.#withNumbers(this.#told);
  }

  /** Of the temperature alone, when nothing else changed. */
  findings(compute: () => readonly Finding[]): readonly Finding[] {
    if (this.#findings === undefined || (this.#change & CHANGE.judged) !== 0) this.#findings = compute();
    else if ((this.#change & CHANGE.temperature) !== 0) this.#findings = this.#withTemperature(this.#findings);
    return this.#findings;
  }

  /** With the past. */
  comparisons(compute: () => readonly Finding[]): readonly Finding[] {
    this.#comparisons ??= compute();
    return this.#comparisons;
  }

  /** `surroundings`: what it depends on besides the values. */
  shown(compute: () => Shown, surroundings: string): Shown {
    if (surroundings !== this.#surroundings) this.#shown = undefined;
    this.#surroundings = surroundings;
    this.#shown ??= compute();
    return this.#shown;
  }

  /** `isDue`: to be looked at again; an equal list stays the same object. */
  processes(compute: () => readonly DeviceProcess[], isDue: boolean): readonly DeviceProcess[] {
    if (this.#processes !== undefined && !isDue && (this.#change & CHANGE.processes) === 0) return this.#processes;
    const processes = compute();
    if (this.#processes === undefined || !areEqual(processes, this.#processes)) this.#processes = processes;
    return this.#processes;
  }

  #withNumbers(told: Told): Told {
    let readings: Reading[] | undefined;
    for (const { path, at } of this.#numbers) {
      const reading = told.readings[at] as Reading;
      const value = this.#values[path];
      if (value === reading.value) continue;
      readings ??= told.readings.slice();
      readings[at] = withValue(reading, value as number);
    }
    if (readings !== undefined) this.#told = { readings, unknown: told.unknown, failed: told.failed };
    return this.#told as Told;
  }

  #withTemperature(findings: readonly Finding[]): readonly Finding[] {
    const [fresh] = temperatureFindings(this.#values as Element);
    return fresh === undefined ? findings : findings.map((finding) => (finding.type === fresh.type ? fresh : finding));
  }

  /** With any other number, everything is made again. */
  #compile(readings: readonly Reading[]): void {
    this.#numbers = readings.flatMap(({ metric, labels }, at) => {
      const field = this.#fields.find((each) => each.metric === metric && each.labels === labels);
      const path = field?.paths.find((each) => typeof this.#values[each] === 'number');
      return path === undefined || changeAt(path) === CHANGE.other ? [] : [{ path, at }];
    });
  }
}

function withValue({ metric, labels }: Reading, value: number): Reading {
  return labels === undefined ? { metric, value } : { metric, labels, value };
}

function areEqual(a: readonly DeviceProcess[], b: readonly DeviceProcess[]): boolean {
  return a.length === b.length && a.every((process, at) => isEqual(process, b[at] as DeviceProcess));
}

function isEqual(a: DeviceProcess, b: DeviceProcess): boolean {
  return a.pid === b.pid && a.memoryUsedBytes === b.memoryUsedBytes && a.podUid === b.podUid && a.containerId === b.containerId;
}
