import type { DeviceProcess } from '../../../model/collection.ts';
import type { Device } from '../../../model/device.ts';
import type { Finding } from '../../../model/health.ts';
import type { Reading } from '../../../model/metric.ts';
import type { Located } from '../devices.ts';
import type { Element } from '../document.ts';
import type { Field } from '../fields.ts';
import { isOver, MARGIN, OVER_TEMPERATURE, SLOWDOWN, SLOWDOWN_MARGIN, TEMPERATURE, temperatureFindings } from '../findings.ts';
import { type Made, type Reported, withReadings } from '../made.ts';
import type { PcieTold } from '../pcie-memory.ts';
import type { Told } from '../readings.ts';
import { areEqual } from '../same-processes.ts';
import { CHANGE } from './changes.ts';
import { NOWHERE, placesOf } from './places.ts';
import type { Sheet, Values } from './sheet.ts';

/** A device with what is kept of it; that is absent where a document tells, which is another each time. */
export type Remembered = Located & { readonly memo?: ElementMemo | undefined };

/** What one `<gpu>` element shows. */
export interface Shown {
  readonly located: readonly Remembered[];
  /** Some of its instances are not told, or have no name of their own yet. */
  readonly isPartial: boolean;
}

/** Changes that leave a report as it is but for its numbers, unless the temperature is judged otherwise. */
const STANDING = CHANGE.numbers | CHANGE.temperature;

/**
 * Keeps what was made of one element's values, and makes it again only when one of them changed that it depends on. Readings of fields
 * are made from the numbers directly.
 */
export class ElementMemo {
  readonly #sheet: Sheet;
  readonly #fields: readonly Field[];
  #made: Made | undefined;
  /** Since the last report. */
  #change: number = CHANGE.other;
  #told: Reported | undefined;
  /** Readings that no element tells, of the library and of others: they stand after the others. */
  #byLibrary: readonly Reading[] = [];
  #more: readonly Reading[] = [];
  /** How many the element tells, and whether others stand after them already. */
  #own = 0;
  #isJoined = false;
  #places: Int16Array;
  #findings: readonly Finding[] | undefined;
  /** Some temperature was at its limit in those findings. */
  #wasOver = false;
  #shown: Shown | undefined;
  #surroundings: string | undefined;
  #processes: readonly DeviceProcess[] | undefined;

  constructor(sheet: Sheet, fields: readonly Field[]) {
    this.#sheet = sheet;
    this.#fields = fields;
    this.#places = new Int16Array(sheet.form.paths.length);
  }

  /** After each round. `change`: bits of what it changed. `byLibrary`: readings that no element tells. */
  begin(change: number, byLibrary: readonly Reading[]): void {
    this.#change |= change;
    if (byLibrary !== this.#byLibrary) this.#isJoined = false;
    this.#byLibrary = byLibrary;
    if ((change & CHANGE.other) === 0) return;
    this.#told = this.#findings = this.#shown = this.#processes = undefined;
  }

  /** The last report. */
  get made(): Made | undefined {
    return this.#made;
  }

  keepMade(made: Made): Made {
    this.#change = CHANGE.none;
    this.#made = made;
    return made;
  }

  /** The last report, with the numbers of now, where nothing else changed that it was made of. `isDue`: as for {@link processes}. */
  standing(device: Device, pcie: PcieTold | undefined, isDue: boolean): Made | undefined {
    const made = this.#made;
    if (made?.device !== device || made.pcie !== pcie || (this.#change & ~STANDING) !== 0) return undefined;
    if ((isDue && made.parts.processes.length > 0) || this.findings() !== made.parts.findings) return undefined;
    const told = this.told(this.#more);
    return told === undefined ? undefined : this.keepMade(withReadings(made, told));
  }

  /** Undefined when it has to be told anew. `more`: readings that no element tells. */
  told(more: readonly Reading[]): Reported | undefined {
    if (this.#told === undefined) return undefined;
    if (more !== this.#more || !this.#isJoined) this.#told = this.#joined(this.#told, more);
    if (this.#sheet.movedCount > 0) this.#told = this.#withNumbers(this.#told);
    return this.#told;
  }

  keepTold({ readings, unknown, failed }: Told, more: readonly Reading[]): Reported {
    this.#own = readings.length;
    this.#places = placesOf(this.#sheet, this.#fields, readings);
    this.#sheet.rest();
    this.#told = this.#joined({ readings, unknown, failed }, more);
    return this.#told;
  }

  #joined({ readings, unknown, failed }: Reported, more: readonly Reading[]): Reported {
    this.#isJoined = true;
    this.#more = more;
    return { readings: [...readings.slice(0, this.#own), ...this.#byLibrary, ...more], unknown, failed };
  }

  /** Undefined when it has to be judged anew. */
  findings(): readonly Finding[] | undefined {
    if ((this.#change & CHANGE.judged) !== 0) return undefined;
    if (this.#findings === undefined || (this.#change & CHANGE.temperature) === 0) return this.#findings;
    const fresh = this.#withTemperature(this.#findings);
    return fresh === this.#findings ? fresh : this.keepFindings(fresh);
  }

  keepFindings(findings: readonly Finding[]): readonly Finding[] {
    this.#findings = findings;
    this.#wasOver = findings.some(({ type, status }) => type === OVER_TEMPERATURE && status !== false);
    return findings;
  }

  /** `surroundings`: what it depends on besides the values. */
  shown(surroundings: string): Shown | undefined {
    return surroundings === this.#surroundings ? this.#shown : undefined;
  }

  keepShown(shown: Shown, surroundings: string): Shown {
    this.#surroundings = surroundings;
    this.#shown = shown;
    return shown;
  }

  /** Undefined when they have to be looked up anew; `isDue`: although nothing changed that the library tells. */
  processes(isDue: boolean): readonly DeviceProcess[] | undefined {
    const isOther = isDue && this.#processes?.length !== 0;
    return isOther || (this.#change & CHANGE.processes) !== 0 ? undefined : this.#processes;
  }

  /** The list of before when it is equal. */
  keepProcesses(processes: readonly DeviceProcess[]): readonly DeviceProcess[] {
    if (this.#processes === undefined || !areEqual(processes, this.#processes)) this.#processes = processes;
    return this.#processes;
  }

  #withNumbers(told: Reported): Reported {
    const before = told.readings;
    const { moved, movedCount, values: now, form } = this.#sheet;
    let readings: Reading[] | undefined;
    for (let index = 0; index < movedCount; index += 1) {
      const path = moved[index] as number;
      const at = this.#places[path] as number;
      if (at === NOWHERE) continue;
      const value = now[form.paths[path] as string] as number;
      const reading = before[at] as Reading;
      if (value === reading.value) continue;
      readings ??= before.slice();
      readings[at] = { ...reading, value };
    }
    this.#sheet.rest();
    return readings === undefined ? told : { readings, unknown: told.unknown, failed: told.failed };
  }

  #withTemperature(findings: readonly Finding[]): readonly Finding[] {
    const { values } = this.#sheet;
    if (!this.#wasOver && this.#isOver(values) === false) return findings;
    const [fresh] = temperatureFindings(values as Element);
    return fresh === undefined ? findings : findings.map((finding) => (finding.type === OVER_TEMPERATURE ? fresh : finding));
  }

  #isOver(v: Values): boolean | undefined {
    return isOver(numeric(v[TEMPERATURE]), numeric(v[SLOWDOWN]), numeric(v[MARGIN]), numeric(v[SLOWDOWN_MARGIN]));
  }
}

const numeric = (value: Values[string]): number | undefined => (typeof value === 'number' ? value : undefined);
