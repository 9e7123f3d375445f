import type { Reading } from '../../../model/metric.ts';
import { shared } from '../../../model/shared-metrics.ts';
import { unseen } from './changes.ts';
import { CODE, kindOf } from './codes.ts';
import { type FieldEntry, FieldPlan } from './field-plan.ts';
import type { Values } from './getter.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

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
/** Counters of `nvmlDeviceGetNvLinkErrorCounter`, before NVLink 5. */
const COUNTERS: Readonly<Record<string, number>> = { replay: 0, recovery: 1, crc_flit: 2, crc_data: 3, ecc: 4 };
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

/** Reads the links of a GPU: state, traffic and errors. Names of links are `nvlink0`, … */
export class NvLinks {
  readonly #library: Library;
  readonly #scratch: Memory;
  readonly #plans: readonly FieldPlan[];
  readonly #values: Values = {};

  constructor(library: Library, scratch: Memory) {
    this.#library = library;
    this.#scratch = scratch;
    this.#plans = Array.from({ length: MOST_LINKS }, (_, link) => new FieldPlan(library, fieldsOf(link)));
  }

  /** Empty for boards without links; `before` itself when nothing changed. */
  read(handle: Handle, before: readonly Reading[]): readonly Reading[] {
    const readings = this.#read(handle);
    const isSame = readings.length === before.length && readings.every((reading, at) => isEqual(reading, before[at] as Reading));
    return isSame ? before : readings;
  }

  #read(handle: Handle): readonly Reading[] {
    const readings: Reading[] = [];
    for (let link = 0; link < MOST_LINKS; link += 1) {
      const code = this.#library.call('nvmlDeviceGetNvLinkState', 'hup', handle, link, this.#scratch.address);
      // Beyond the last link, or no links at all.
      if (code === CODE.invalidArgument || code === CODE.notSupported || code === CODE.functionNotFound) break;
      if (code !== CODE.success) {
        if (kindOf(code) === 'device' || kindOf(code) === 'node') break;
        continue;
      }
      const isUp = this.#scratch.u32(0) === 1;
      readings.push({ metric: shared.linkUp.name, labels: { port: `nvlink${link}` }, value: Number(isUp) });
      if (isUp) readings.push(...this.#counters(handle, link));
    }
    return readings;
  }

  #counters(handle: Handle, link: number): readonly Reading[] {
    const port = `nvlink${link}`;
    const plan = this.#plans[link] as FieldPlan;
    // Links of another GPU were read in between: nothing is known.
    plan.read(handle, this.#values, unseen(plan.words));
    const number = (path: string): number | undefined => {
      const value = this.#values[path];
      return typeof value === 'number' ? value : undefined;
    };
    const byMetric = new Map<string, number>();
    for (const [metric, field, scale] of TRAFFIC) {
      const value = number(`${link}/${field}`);
      if (value !== undefined) byMetric.set(metric, value * scale);
    }
    const traffic = [...byMetric].map(([metric, value]) => ({ metric, labels: { port }, value }));
    const errors = [
      ...this.#errorCounters(handle, link),
      ...Object.entries(ERROR_FIELDS).map(([kind, field]) => [kind, number(`${link}/${field}`)] as const),
    ];
    return [
      ...traffic,
      ...errors.flatMap(([kind, value]) => (value === undefined ? [] : [{ metric: NVLINK_ERRORS, labels: { port, kind }, value }])),
    ];
  }

  #errorCounters(handle: Handle, link: number): readonly (readonly [string, number | undefined])[] {
    return Object.entries(COUNTERS).map(([kind, counter]) => {
      const code = this.#library.call('nvmlDeviceGetNvLinkErrorCounter', 'huip', handle, link, counter, this.#scratch.address);
      return [kind, code === CODE.success ? this.#scratch.u64(0) : undefined] as const;
    });
  }
}

const isEqual = (a: Reading, b: Reading): boolean =>
  a.value === b.value && a.metric === b.metric && a.labels?.port === b.labels?.port && a.labels?.kind === b.labels?.kind;

function fieldsOf(link: number): readonly FieldEntry[] {
  const ids = [...TRAFFIC.map(([, field]) => field), ...Object.values(ERROR_FIELDS)];
  return ids.map((id) => ({ id, scope: link, path: `${link}/${id}` }));
}
