import { isDeepStrictEqual } from 'node:util';
import type { Collection, DeviceReport } from '../model/collection.ts';
import { deviceKey } from '../model/device.ts';
import type { SeriesId, Value } from '../model/metric.ts';
import { Readings } from '../model/readings.ts';

/** Values of a list of series. The list itself is sent once, and then stands for its number. */
interface EncodedReadings {
  readonly version: number;
  /** Absent when the receiver has the series of that number. */
  readonly series?: readonly SeriesId[];
  readonly values: readonly Value[];
}

type WithEncoded<T extends { readonly readings: Readings }> = Omit<T, 'readings'> & { readonly readings: EncodedReadings };
type EncodedReport = Omit<DeviceReport, 'read' | 'aside'> & {
  readonly read?: WithEncoded<NonNullable<DeviceReport['read']>>;
  readonly aside?: WithEncoded<NonNullable<DeviceReport['aside']>>;
};

/** A collection on its way from one thread to another: which series a device has is not repeated as long as it stays the same. */
export type EncodedCollection = Omit<Collection, 'reports'> & { readonly reports: readonly EncodedReport[] };

type Part = 'read' | 'aside';

const keyOf = (report: Pick<DeviceReport, 'device'>, part: Part): string => `${deviceKey(report.device)} ${part}`;

/** In the thread of the probe. */
export class CollectionEncoder {
  #sent = new Map<string, { readonly version: number; readonly series: readonly SeriesId[] }>();
  #versions = 0;

  encode({ reports, ...rest }: Collection): EncodedCollection {
    const sent = new Map<string, { readonly version: number; readonly series: readonly SeriesId[] }>();
    const encode = (report: DeviceReport, part: Part, { series, values }: Readings): EncodedReadings => {
      const key = keyOf(report, part);
      const before = this.#sent.get(key);
      const isKnown = before !== undefined && areSame(before.series, series);
      const version = isKnown ? before.version : ++this.#versions;
      sent.set(key, { version, series: isKnown ? before.series : series });
      return isKnown ? { version, values } : { version, series, values };
    };
    const encoded = reports.map((report): EncodedReport => {
      const { read, aside, ...device } = report;
      return {
        ...device,
        ...(read === undefined ? {} : { read: { ...read, readings: encode(report, 'read', read.readings) } }),
        ...(aside === undefined ? {} : { aside: { ...aside, readings: encode(report, 'aside', aside.readings) } }),
      };
    });
    this.#sent = sent;
    return { ...rest, reports: encoded };
  }
}

function areSame(a: readonly SeriesId[], b: readonly SeriesId[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((one, at) => one.metric === b[at]?.metric && areSameLabels(one.labels, b[at]?.labels));
}

const areSameLabels = (a: SeriesId['labels'], b: SeriesId['labels']): boolean => a === b || isDeepStrictEqual(a, b);

/** In the thread that owns the probe's thread; understands one encoder, from its first message on. */
export class CollectionDecoder {
  #known = new Map<string, { readonly version: number; readonly series: readonly SeriesId[] }>();

  decode({ reports, ...rest }: EncodedCollection): Collection {
    const known = new Map<string, { readonly version: number; readonly series: readonly SeriesId[] }>();
    const decode = (report: EncodedReport, part: Part, { version, series, values }: EncodedReadings): Readings => {
      const key = keyOf(report, part);
      const before = this.#known.get(key);
      const list = series ?? (before?.version === version ? before.series : undefined);
      if (list === undefined) throw new Error(`the series of ${key} were never sent`);
      known.set(key, { version, series: list });
      return new Readings(list, values);
    };
    const decoded = reports.map((report): DeviceReport => {
      const { read, aside, ...device } = report;
      return {
        ...device,
        ...(read === undefined ? {} : { read: { ...read, readings: decode(report, 'read', read.readings) } }),
        ...(aside === undefined ? {} : { aside: { ...aside, readings: decode(report, 'aside', aside.readings) } }),
      };
    });
    this.#known = known;
    return { ...rest, reports: decoded };
  }
}
