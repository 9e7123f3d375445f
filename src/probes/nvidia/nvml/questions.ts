import type { DriverVersion } from './driver-version.ts';
import { type FieldEntry, FieldPlan, factFields, fastFields, slowFields, throttleFields } from './field-plan.ts';
import { BoundGetter, type Getter, type Question } from './getter.ts';
import { eccGetters, instanceErrors, repairGetters } from './getters-errors.ts';
import { factGetters, identityGetters, TEMPERATURE_MARGINS, thresholdGetters } from './getters-facts.ts';
import { fastGetters, memoryGetter, powerGetter, splitGetters } from './getters-fast.ts';
import { bar1Getter, protectedMemory, slowGetters } from './getters-slow.ts';
import type { Library } from './library.ts';
import { Form } from './sheet.ts';

/** How a board counts memory errors: by SRAM and DRAM, or up to Volta by single and double bits. */
export type EccForm = 'unified' | 'byBits';

/** Everything that is asked of a GPU and of an instance, bound to one library and driver. */
export interface Questions {
  /** Where the answers of a GPU and of an instance stand. */
  readonly gpu: Form;
  readonly instance: Form;
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
  /** With the facts until they are answered. */
  readonly identity: readonly Question[];
  readonly lifetime: Readonly<Record<EccForm, readonly Question[]>>;
  readonly fastInstance: readonly Question[];
  /** With the errors of its GPU. */
  readonly instanceErrors: readonly Question[];
  readonly slowInstance: readonly Question[];
}

export function bindQuestions(library: Library, driver: DriverVersion): Questions {
  const [gpu, instance] = [new Form(), new Form()];
  const all = (getters: readonly Getter[], form: Form = gpu): Question[] => getters.map((getter) => new BoundGetter(library, getter, form));
  const plan = (entries: readonly FieldEntry[]): Question => new FieldPlan(library, entries, gpu);
  const ecc = (period: 'volatile' | 'aggregate'): Questions['errors'] => ({
    unified: all(eccGetters[period].unified),
    byBits: all(eccGetters[period].byBits),
  });
  return {
    gpu,
    instance,
    fast: [
      ...all(fastGetters(driver)),
      plan([...fastFields, ...throttleFields(driver)]),
      ...all([{ ...powerGetter, unless: ['gpu_power_readings/instant_power_draw'] }]),
    ],
    errors: ecc('volatile'),
    repairs: all(repairGetters),
    protectedMemory: all([protectedMemory]),
    split: all(splitGetters),
    slow: [...all(slowGetters), plan(slowFields)],
    // The same limit in degrees and as degrees left would be told twice.
    facts: [...all(factGetters), plan(factFields), ...all(thresholdGetters.map((getter) => ({ ...getter, unless: TEMPERATURE_MARGINS })))],
    identity: all(identityGetters),
    lifetime: ecc('aggregate'),
    fastInstance: all([memoryGetter], instance),
    instanceErrors: all([instanceErrors], instance),
    slowInstance: all([bar1Getter], instance),
  };
}
