import type { Collection, DeviceRead, DeviceReport, Listing, SideReport } from '../../src/model/collection.ts';
import type { Finding } from '../../src/model/health.ts';
import type { Reading, Value } from '../../src/model/metric.ts';
import type { Choose } from './seeded.ts';

/**
 * What a probe could tell, one read after the other: most of it as before, as the same objects. Devices come, go and change places, series come, go and change names while their number stays, and values take all forms that a number has.
 */
export class RandomProbe {
  readonly #pick: Choose;
  readonly #family: string;
  #now: Collection;
  #names = 0;

  constructor(pick: Choose, family = 'toy') {
    this.#pick = pick;
    this.#family = family;
    this.#now = { reports: [this.#report()], problems: [], listing: 'complete' };
  }

  collect(): Collection {
    for (let changes = this.#pick(4); changes > 0; changes -= 1) this.#now = this.#changed();
    return this.#now;
  }

  #changed(): Collection {
    const pick = this.#pick;
    const { reports } = this.#now;
    const at = pick(reports.length + 1);
    const report = reports[at];
    const kind = pick(30);
    if (report === undefined || kind === 0) return this.#with([...reports.slice(0, at), this.#report(), ...reports.slice(at)]);
    if (kind === 1) return this.#with(reports.toSpliced(at, 1));
    if (kind === 2) return this.#with(reports.toReversed());
    if (kind === 3) return this.#with(reports.slice(0, pick(3)));
    if (kind <= 6) return this.#rest(kind);
    return this.#with(reports.with(at, this.#other(report, kind)));
  }

  #with(reports: readonly DeviceReport[]): Collection {
    return { ...this.#now, reports };
  }

  #rest(kind: number): Collection {
    const { reports, problems, listing } = this.#now;
    if (kind === 4) return { ...this.#now, problems: problems.length > 0 ? [] : [{ code: 'x', message: `${this.#pick(2)}` }] };
    if (kind === 5) return { ...this.#now, listing: (['complete', 'partial', 'absent'] as const)[this.#pick(3)] as Listing };
    return { reports, problems, listing, ...(this.#pick(2) > 0 && { source: `${this.#pick(2)}` }) };
  }

  #other(report: DeviceReport, kind: number): DeviceReport {
    const { device, outOfBand } = report;
    const read = report.read ?? { readings: [], findings: [] };
    if (kind === 7) return { ...report, device: { ...device, [this.#pick(2) === 0 ? 'firmware' : 'driver']: `${this.#pick(3)}` } };
    if (kind === 8) return { device, ...(outOfBand === undefined ? {} : { outOfBand }) };
    if (kind === 9) return { ...report, outOfBand: this.#outOfBand() };
    if (kind === 10) return { device, ...(report.read === undefined ? {} : { read }) };
    return { ...report, read: this.#otherRead(read, kind) };
  }

  #otherRead(read: DeviceRead, kind: number): DeviceRead {
    const { readings, findings } = read;
    if (kind === 11) return { ...read, findings: [...findings.slice(1), this.#finding()] };
    if (kind === 12) {
      const podUid = this.#pick(3) > 0 && { name: 'python', podUid: `p${this.#pick(3)}-${this.#pick(2)}` };
      return { ...read, processes: [{ pid: this.#pick(3), memoryUsedBytes: this.#pick(3), ...podUid }] };
    }
    if (kind === 13) return { readings, findings };
    if (kind === 14) return { ...read, readings: this.#readings(readings.length) };
    if (kind === 15) return { ...read, readings: this.#readings(this.#pick(6)) };
    const moved = [...readings].map((reading) => this.#moved(reading));
    return { ...read, readings: moved, ...(kind === 16 && { findings: [this.#finding()] }) };
  }

  /** Another value, of now or of an earlier read, or the same value as of an earlier read. */
  #moved({ readMs, ...reading }: Reading): Reading {
    const kind = this.#pick(6);
    if (kind < 3) return readMs === undefined ? reading : { ...reading, readMs };
    return { ...reading, value: kind === 3 ? reading.value : this.#value(), ...(kind < 5 && { readMs: this.#pick(3) }) };
  }

  #outOfBand(): SideReport {
    const status = this.#pick(2) === 0;
    const finding: Finding = { type: 'Xid', instance: `${this.#pick(2)}`, reason: 'Logged', message: `${this.#pick(3)}`, status };
    return { readings: this.#readings(this.#pick(3), ['m3']), findings: this.#pick(3) === 0 ? [] : [finding] };
  }

  #report(): DeviceReport {
    // A name that went may come again, with other series.
    const id = `d${this.#pick(3) === 0 ? this.#pick(this.#names + 1) : this.#names++}`;
    return {
      device: { family: this.#family, id, kind: 'toy', aliases: [] },
      read: { readings: this.#readings(this.#pick(6)), findings: [this.#finding()] },
    };
  }

  /** No series twice, and none in two sources of a device. */
  #readings(length: number, metrics = ['m0', 'm1', 'm2']): readonly Reading[] {
    const series = new Map<string, Omit<Reading, 'value'>>();
    while (series.size < length) {
      const one = this.#series(metrics);
      series.set(JSON.stringify(one), one);
    }
    return [...series.values()].map((one) => ({ ...one, value: this.#value() }));
  }

  #series(metrics: readonly string[]): Omit<Reading, 'value'> {
    const metric = metrics[this.#pick(metrics.length)] as string;
    const labels = [undefined, { port: `${this.#pick(3)}` }, { kind: 'a', port: '1' }][this.#pick(3)];
    return labels === undefined ? { metric } : { metric, labels };
  }

  #finding(): Finding {
    const message = `${this.#pick(3)}`;
    if (this.#pick(3) === 0) return { type: 'Errors', reason: 'Counted', message, count: this.#pick(30) };
    const status = [true, true, false, 'unknown' as const][this.#pick(4)] as boolean | 'unknown';
    return { type: 'PortDown', reason: 'LinkDown', message, status, ...(this.#pick(2) === 0 && { instance: `${this.#pick(2)}` }) };
  }

  #value(): Value {
    const small = this.#pick(4);
    const large = 2n ** BigInt(50 + this.#pick(16)) + BigInt(small);
    return [small, -small - 1, small / 3, BigInt(small), large, -large, Number.NaN, Number.POSITIVE_INFINITY, 1e300][
      this.#pick(9)
    ] as Value;
  }
}
