import { NOT_ASKED } from './changes.ts';
import { FieldPlan, factFields, fastFields, slowFields, throttleFields } from './field-plan.ts';
import { type BoundGetter, bindGetter, type Getter, type Values } from './getter.ts';
import { eccGetters, instanceErrors, repairGetters } from './getters-errors.ts';
import { factGetters, TEMPERATURE_MARGINS, thresholdGetters } from './getters-facts.ts';
import { fastGetters, memoryGetter, powerGetter, splitGetters } from './getters-fast.ts';
import { bar1Getter, protectedMemory, slowGetters } from './getters-slow.ts';
import type { Library } from './library.ts';

/** How a board counts memory errors: by SRAM and DRAM, or up to Volta by single and double bits. */
export type EccForm = 'unified' | 'byBits';

/** A getter with a number, under which a device's notes on it are kept. */
export interface Question extends BoundGetter {
  readonly index: number;
}

/** Everything that is asked of a GPU and of an instance, bound to one library and driver. */
export interface Questions {
  readonly fast: readonly Question[];
  /** Errors by memory, since the driver was loaded. */
  readonly errors: Readonly<Record<EccForm, readonly Question[]>>;
  /** With the errors. */
  readonly repairs: readonly Question[];
  /** With the slow ones where there is any, else with the facts. */
  readonly protectedMemory: readonly Question[];
  readonly slow: readonly Question[];
  /** Whether the GPU is split: with the slow ones, and before them. */
  readonly split: readonly Question[];
  readonly facts: readonly Question[];
  readonly lifetime: Readonly<Record<EccForm, readonly Question[]>>;
  readonly fastInstance: readonly Question[];
  /** With the errors of its GPU. */
  readonly instanceErrors: readonly Question[];
  readonly slowInstance: readonly Question[];
}

export function bindQuestions(library: Library, driverBranch: number): Questions {
  let index = 0;
  const numbered = (bound: BoundGetter): Question => ({
    index: index++,
    name: bound.name,
    paths: bound.paths,
    words: bound.words,
    read: bound.read.bind(bound),
  });
  const bind = (getter: Getter): BoundGetter => bindGetter(library, getter);
  const all = (getters: readonly Getter[]): Question[] => getters.map((getter) => numbered(bind(getter)));
  const ecc = (period: 'volatile' | 'aggregate'): Questions['errors'] => ({
    unified: all(eccGetters[period].unified),
    byBits: all(eccGetters[period].byBits),
  });
  return {
    fast: [
      ...all(fastGetters),
      numbered(new FieldPlan(library, [...fastFields, ...throttleFields(driverBranch)])),
      numbered(unlessTold(['gpu_power_readings/instant_power_draw'], bind(powerGetter))),
    ],
    errors: ecc('volatile'),
    repairs: all(repairGetters),
    protectedMemory: all([protectedMemory]),
    split: all(splitGetters),
    slow: [...all(slowGetters), numbered(new FieldPlan(library, slowFields))],
    facts: [
      ...all(factGetters),
      numbered(new FieldPlan(library, factFields)),
      // The same limit in degrees and as degrees left would be told twice.
      ...thresholdGetters.map((getter) => numbered(unlessTold(TEMPERATURE_MARGINS, bind(getter)))),
    ],
    lifetime: ecc('aggregate'),
    fastInstance: all([memoryGetter]),
    instanceErrors: all([instanceErrors]),
    slowInstance: all([bar1Getter]),
  };
}

/** For what drivers tell in a better way or in this one. */
function unlessTold(better: readonly string[], getter: BoundGetter): BoundGetter {
  const isTold = (values: Values): boolean => better.some((path) => typeof values[path] === 'number');
  return { ...getter, read: (handle, values, seen) => (isTold(values) ? NOT_ASKED : getter.read(handle, values, seen)) };
}
