import type { Reading } from '../../../model/metric.ts';
import { shared } from '../../../model/shared-metrics.ts';
import { CHANGE } from './changes.ts';
import { CODE, kindOf } from './codes.ts';
import { type FieldEntry, FieldPlan } from './field-plan.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';
import { Form, Sheet } from './sheet.ts';

/** `NVML_NVLINK_MAX_LINKS` of nvml.h 13.3. */
const MOST_LINKS = 36;
export const NVLINK_ERRORS = 'device_nvidia_nvlink_errors_total';
const KIBIBYTE = 1_024;

/** Counters of one link; `scope` of a field is the link. The generation before NVLink 5 counts in KiB, NVLink 5 in bytes. */
const TRAFFIC: readonly (readonly [metric: string, field: number, scale: number])[] = [
  [shared.transmittedBytes.name, 138, KIBIBYTE],
  [shared.receivedBytes.name, 139, KIBIBYTE],
  [shared.transmittedBytes.name, 202, 1],
  [shared.receivedBytes.name, 204, 1],
];
/** Counters of `nvmlDeviceGetNvLinkErrorCounter`, before NVLink 5: kinds by number. */
const COUNTERS = ['replay', 'recovery', 'crc_flit', 'crc_data', 'ecc'] as const;
/** NVLink 5. */
const ERROR_FIELDS: Readonly<Record<string, number>> = {
  malformed: 206,
  overrun: 207,
  receive: 208,
  remote: 209,
  general: 210,
  local_integrity: 211,
  discarded: 212,
  recovery_failed: 214,
};

/** What reads links, bound to one library. */
export interface LinkCalls {
  readonly state: NvmlFunction | undefined;
  readonly errorCounter: NvmlFunction | undefined;
  readonly plans: readonly { readonly plan: FieldPlan; readonly form: Form }[];
  readonly scratch: Memory;
}

export function bindLinks(library: Library, scratch: Memory): LinkCalls {
  return {
    state: library.bind('nvmlDeviceGetNvLinkState', 'hup'),
    errorCounter: library.bind('nvmlDeviceGetNvLinkErrorCounter', 'huip'),
    plans: Array.from({ length: MOST_LINKS }, (_, link) => planOf(library, link)),
    scratch,
  };
}

function planOf(library: Library, link: number): LinkCalls['plans'][number] {
  const form = new Form();
  return { plan: new FieldPlan(library, fieldsOf(link), form), form };
}

/** The links of a GPU: state, traffic and errors. Names of links are `nvlink0`, … */
export class GpuLinks {
  /** Empty for boards without links; another list whenever something changed. */
  readings: readonly Reading[] = [];
  readonly #calls: LinkCalls;
  readonly #gpu: Handle;
  #links: Link[] = [];
  /** The board has no links, as long as its instances. */
  #isWithout = false;

  constructor(calls: LinkCalls, gpu: Handle) {
    this.#calls = calls;
    this.#gpu = gpu;
  }

  refresh(): void {
    if (this.#isWithout) return;
    let isOther = false;
    let told = 0;
    for (let number = 0; number < MOST_LINKS; number += 1) {
      const code = this.#calls.state?.(this.#gpu, number, this.#calls.scratch.address) ?? CODE.functionNotFound;
      if (code !== CODE.success && isLast(code)) {
        this.#isWithout = number === 0 && isForGood(code);
        break;
      }
      const isUp = code === CODE.success ? this.#calls.scratch.u32(0) === 1 : undefined;
      this.#links[number] ??= new Link(this.#calls, this.#gpu, number);
      if ((this.#links[number] as Link).refresh(isUp)) isOther = true;
      told += 1;
    }
    if (!isOther && told === this.#links.length) return;
    this.#links.length = told;
    this.readings = this.#links.flatMap(({ readings }) => readings);
  }

  forget(): void {
    this.#links = [];
    this.readings = [];
    this.#isWithout = false;
  }
}

const isForGood = (code: number): boolean => code === CODE.notSupported || code === CODE.functionNotFound;
/** Beyond the last link, no links at all, or nothing that would answer. */
const isLast = (code: number): boolean =>
  isForGood(code) || code === CODE.invalidArgument || kindOf(code) === 'device' || kindOf(code) === 'node';

/** One link: what it told last, so that of the same answers nothing is made. */
class Link {
  readings: readonly Reading[] = [];
  readonly #calls: LinkCalls;
  readonly #gpu: Handle;
  readonly #number: number;
  readonly #plan: FieldPlan;
  readonly #sheet: Sheet;
  readonly #counters: (number | undefined)[] = COUNTERS.map(() => undefined);
  /** Of NVLink 5 no counter is told this way. */
  #hasCounters = true;
  #isUp: boolean | undefined;

  constructor(calls: LinkCalls, gpu: Handle, number: number) {
    this.#calls = calls;
    this.#gpu = gpu;
    this.#number = number;
    const { plan, form } = calls.plans[number] as LinkCalls['plans'][number];
    this.#plan = plan;
    this.#sheet = new Sheet(gpu, {}, form);
  }

  /** True when something changed. `isUp`: undefined when the state is not told. */
  refresh(isUp: boolean | undefined): boolean {
    const isOtherState = isUp !== this.#isUp;
    this.#isUp = isUp;
    const isCounted = isUp === true && this.#count();
    if (!isOtherState && !isCounted) return false;
    this.readings = isUp === undefined ? [] : this.#told(isUp);
    return true;
  }

  #count(): boolean {
    this.#sheet.change = CHANGE.none;
    this.#sheet.codes[0] = this.#plan.read(this.#sheet);
    const isCounted = this.#hasCounters && this.#countErrors();
    return isCounted || this.#sheet.change !== CHANGE.none;
  }

  #countErrors(): boolean {
    let [isOther, isTold] = [false, false];
    for (let counter = 0; counter < COUNTERS.length; counter += 1) {
      const { errorCounter, scratch } = this.#calls;
      const code = errorCounter?.(this.#gpu, this.#number, counter, scratch.address) ?? CODE.functionNotFound;
      const value = code === CODE.success ? scratch.u64(0) : undefined;
      isTold ||= !isForGood(code);
      if (value !== this.#counters[counter]) isOther = true;
      this.#counters[counter] = value;
    }
    this.#hasCounters = isTold;
    return isOther;
  }

  #told(isUp: boolean): readonly Reading[] {
    const port = `nvlink${this.#number}`;
    const readings: Reading[] = [{ metric: shared.linkUp.name, labels: { port }, value: Number(isUp) }];
    if (!isUp) return readings;
    const byMetric = new Map<string, number>();
    for (const [metric, field, scale] of TRAFFIC) {
      const value = this.#field(field);
      if (value !== undefined) byMetric.set(metric, value * scale);
    }
    for (const [metric, value] of byMetric) readings.push({ metric, labels: { port }, value });
    const errors = [
      ...COUNTERS.map((kind, counter) => [kind, this.#counters[counter]] as const),
      ...Object.entries(ERROR_FIELDS).map(([kind, field]) => [kind, this.#field(field)] as const),
    ];
    for (const [kind, value] of errors) if (value !== undefined) readings.push({ metric: NVLINK_ERRORS, labels: { port, kind }, value });
    return readings;
  }

  #field(field: number): number | undefined {
    const value = this.#sheet.values[`${this.#number}/${field}`];
    return typeof value === 'number' ? value : undefined;
  }
}

function fieldsOf(link: number): readonly FieldEntry[] {
  const ids = [...TRAFFIC.map(([, field]) => field), ...Object.values(ERROR_FIELDS)];
  return ids.map((id) => ({ id, scope: link, path: `${link}/${id}` }));
}
