import type { DeviceProcess } from '../../../model/collection.ts';
import type { Finding } from '../../../model/health.ts';
import type { Reading } from '../../../model/metric.ts';
import type { Shown } from '../devices.ts';
import type { Element } from '../document.ts';
import type { Field } from '../fields.ts';
import { temperatureFindings } from '../findings.ts';
import type { Told } from '../readings.ts';
import type { Values } from './getter.ts';
import type { Question } from './questions.ts';

/** Paths that change at each round and are read as numbers alone: whatever else is made of values does not depend on them. */
const VARYING =
  /^(?:utilization|fb_memory_usage|clocks|[a-z_]*power_readings|nvml\/throttled|clocks_event_reasons_counters)\/|^fan_speed$|^nvml\/energy$|^temperature\/memory_temp$|^pci\/replay_/;
/** Varying too, and judged: by the finding of the temperature, and by no other. */
const JUDGED = /^temperature\/gpu_temp(?:_tlimit)?$/;

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
  readonly #paths: RoundPaths;
  readonly #fields: readonly Field[];
  readonly #last: Values[string][] = [];
  #isStale = true;
  #isJudgedStale = true;
  #told: Told | undefined;
  #numbers: readonly NumberAt[] = [];
  #findings: readonly Finding[] | undefined;
  #comparisons: readonly Finding[] | undefined;
  #shown: Shown | undefined;
  #processes: readonly DeviceProcess[] | undefined;

  constructor(values: Values, paths: RoundPaths, fields: readonly Field[]) {
    this.#values = values;
    this.#paths = paths;
    this.#fields = fields;
  }

  /** After each round. `isWhole`: everything may have changed. True when more than numbers did. */
  begin(isWhole: boolean): boolean {
    const { kept, judged, varying } = this.#paths;
    const isOther = this.#differs(kept, 0, false);
    // A word in the place of a number, or a number that is there no more.
    const isOdd = this.#differs(varying, kept.length, true);
    const isOddlyJudged = this.#differs(judged, kept.length + varying.length, true);
    const isJudgedOther = this.#differs(judged, kept.length + varying.length + judged.length, false);
    this.#isStale = isWhole || isOther || isOdd || isOddlyJudged;
    this.#isJudgedStale = this.#isStale || isJudgedOther;
    return this.#isStale;
  }

  /** `more`: readings that no element tells. */
  told(compute: () => Told, more: readonly Reading[] = []): Told {
    if (this.#isStale || this.#told === undefined) {
      const told = compute();
      this.#told = { ...told, readings: [...told.readings, ...more] };
      this.#compile(this.#told.readings);
      return this.#told;
    }
    const before = this.#told.readings;
    let readings: Reading[] | undefined;
    for (const { path, at } of this.#numbers) {
      const reading = before[at] as Reading;
      const value = this.#values[path];
      if (value === reading.value) continue;
      readings ??= before.slice();
      readings[at] = withValue(reading, value as number);
    }
    if (readings !== undefined) this.#told = { ...this.#told, readings };
    return this.#told;
  }

  /** Of the temperature alone, when nothing else changed. */
  findings(compute: () => readonly Finding[]): readonly Finding[] {
    if (this.#isStale || this.#findings === undefined) this.#findings = compute();
    else if (this.#isJudgedStale) this.#findings = this.#withTemperature(this.#findings);
    return this.#findings;
  }

  /** With the past. */
  comparisons(compute: () => readonly Finding[]): readonly Finding[] {
    if (this.#isStale || this.#comparisons === undefined) this.#comparisons = compute();
    return this.#comparisons;
  }

  shown(compute: () => Shown): Shown {
    if (this.#isStale || this.#shown === undefined) this.#shown = compute();
    return this.#shown;
  }

  processes(compute: () => readonly DeviceProcess[]): readonly DeviceProcess[] {
    if (this.#isStale || this.#processes === undefined) this.#processes = compute();
    return this.#processes;
  }

  #withTemperature(findings: readonly Finding[]): readonly Finding[] {
    const [fresh] = temperatureFindings(this.#values as Element);
    return fresh === undefined ? findings : findings.map((finding) => (finding.type === fresh.type ? fresh : finding));
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
    // With any other number, everything is made again.
    const moving = new Set([...this.#paths.varying, ...this.#paths.judged]);
    this.#numbers = readings.flatMap(({ metric, labels }, at) => {
      const field = this.#fields.find((each) => each.metric === metric && each.labels === labels);
      const path = field?.paths.find((each) => typeof this.#values[each] === 'number');
      return path !== undefined && moving.has(path) ? [{ path, at }] : [];
    });
  }
}

function withValue({ metric, labels }: Reading, value: number): Reading {
  return labels === undefined ? { metric, value } : { metric, labels, value };
}
