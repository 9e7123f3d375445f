import type { DeviceProcess } from '../../../model/collection.ts';
import type { Finding } from '../../../model/health.ts';
import type { Reading } from '../../../model/metric.ts';
import type { Located } from '../devices.ts';
import type { Field } from '../fields.ts';
import type { Told } from '../readings.ts';
import type { Values } from './getter.ts';
import type { Question } from './questions.ts';

/** Paths that change at each round and are read as numbers alone: whatever else is made of values does not depend on them. */
const VARYING =
  /^(?:utilization|fb_memory_usage|clocks|[a-z_]*power_readings|nvml\/throttled|clocks_event_reasons_counters)\/|^nvml\/energy$|^temperature\/memory_temp$|^pci\/replay_/;
/** Varying too, and judged: by findings, and by nothing else. */
const JUDGED = /^temperature\/gpu_temp(?:_tlimit)?$|^fan_speed$/;

/** Paths of a round by what hangs on them. */
export interface RoundPaths {
  readonly kept: readonly string[];
  readonly judged: readonly string[];
  readonly varying: readonly string[];
}

export function roundPaths(questions: readonly Question[], more: readonly string[]): RoundPaths {
  const all = [...new Set([...questions.flatMap(({ paths }) => paths), ...more])];
  const judged = all.filter((path) => JUDGED.test(path));
  const varying = all.filter((path) => VARYING.test(path));
  return { judged, varying, kept: all.filter((path) => !judged.includes(path) && !varying.includes(path)) };
}

interface FieldReading {
  readonly path: string;
  readonly reading: Reading;
}

/**
 * Keeps what was made of one element's values, and makes it again only when one of them changed that it depends on. Readings of fields
 * are made from the numbers directly.
 */
export class ElementMemo {
  readonly #values: Values;
  readonly #paths: RoundPaths;
  readonly #fields: readonly Field[];
  readonly #last: Values[string][] = [];
  #isStale = true;
  #isJudgedStale = true;
  #told: Told | undefined;
  #fieldReadings: readonly FieldReading[] = [];
  #rest: readonly Reading[] = [];
  #findings: readonly Finding[] | undefined;
  #located: readonly Located[] | undefined;
  #processes: readonly DeviceProcess[] | undefined;

  constructor(values: Values, paths: RoundPaths, fields: readonly Field[]) {
    this.#values = values;
    this.#paths = paths;
    this.#fields = fields;
  }

  /** Before the first question of a round. `isWhole`: everything may have changed. */
  begin(isWhole: boolean): void {
    const { kept, judged, varying } = this.#paths;
    const isOther = this.#differs(kept, 0, false);
    // A word in the place of a number, or a number that is there no more.
    const isOdd = this.#differs(varying, kept.length, true);
    const isOddlyJudged = this.#differs(judged, kept.length + varying.length, true);
    const isJudgedOther = this.#differs(judged, kept.length + varying.length + judged.length, false);
    this.#isStale = isWhole || isOther || isOdd || isOddlyJudged;
    this.#isJudgedStale = this.#isStale || isJudgedOther;
  }

  /** `more`: readings that no element tells. */
  told(compute: () => Told, more: readonly Reading[] = []): Told {
    if (this.#isStale || this.#told === undefined) {
      const told = compute();
      this.#told = { ...told, readings: [...told.readings, ...more] };
      this.#compile(this.#told.readings);
      return this.#told;
    }
    const fresh = this.#fieldReadings.map(({ path, reading }): FieldReading => {
      const value = this.#values[path];
      return value === reading.value ? { path, reading } : { path, reading: { ...reading, value: value as number } };
    });
    this.#fieldReadings = fresh;
    this.#told = { ...this.#told, readings: [...fresh.map(({ reading }) => reading), ...this.#rest] };
    return this.#told;
  }

  findings(compute: () => readonly Finding[]): readonly Finding[] {
    if (this.#isJudgedStale || this.#findings === undefined) this.#findings = compute();
    return this.#findings;
  }

  located(compute: () => readonly Located[]): readonly Located[] {
    if (this.#isStale || this.#located === undefined) this.#located = compute();
    return this.#located;
  }

  processes(compute: () => readonly DeviceProcess[]): readonly DeviceProcess[] {
    if (this.#isStale || this.#processes === undefined) this.#processes = compute();
    return this.#processes;
  }

  /** `byKind`: any number is the same as any other. */
  #differs(paths: readonly string[], from: number, byKind: boolean): boolean {
    let differs = false;
    for (let index = 0; index < paths.length; index += 1) {
      const value = this.#values[paths[index] as string];
      const seen = byKind && typeof value === 'number' ? 0 : value;
      if (seen === this.#last[from + index]) continue;
      this.#last[from + index] = seen;
      differs = true;
    }
    return differs;
  }

  #compile(readings: readonly Reading[]): void {
    const rest: Reading[] = [];
    const found: FieldReading[] = [];
    for (const reading of readings) {
      const field = this.#fields.find(({ metric, labels }) => metric === reading.metric && labels === reading.labels);
      const path = field?.paths.find((each) => typeof this.#values[each] === 'number');
      if (path === undefined) rest.push(reading);
      else found.push({ path, reading });
    }
    this.#fieldReadings = found;
    this.#rest = rest;
  }
}
