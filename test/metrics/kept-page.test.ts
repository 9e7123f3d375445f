import { describe, expect, it } from 'vitest';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Format } from '../../src/metrics/page/page.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { Verdict } from '../../src/model/health.ts';
import { memoizedBy, Readings, type Series } from '../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { CollectionReceiver, CollectionSender } from '../../src/supervisor/posted-collection.ts';
import { RandomProbe } from '../support/random-collections.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { families, snapshot, state, stats } from './sample.ts';

/** The same readings of declared metrics, of which the same series stay the same object. */
const declared = memoizedBy((readings: Readings) => new Readings(declaredSeries(readings.series), readings.values, readings.times));
const declaredSeries = memoizedBy((series: readonly Series[]) =>
  series.map((one) => ({ ...one, metric: METRICS[one.metric.length % 4] as string })),
);

const METRICS = ['device_temperature_celsius', 'device_errors_total', 'device_toy_crossings_total', 'device_none'];

/** Snapshots one after the other, most of whose objects are those of the snapshot before. */
class Snapshots {
  readonly #pick: Choose;
  readonly #probe: RandomProbe;
  readonly #link = { sender: new CollectionSender(), receiver: new CollectionReceiver() };
  #devices: readonly DeviceState[] = [];
  #containers = snapshot.containerReadings;
  #usage = snapshot.usage;

  constructor(pick: Choose) {
    this.#pick = pick;
    this.#probe = new RandomProbe(pick);
  }

  next(): Snapshot {
    const pick = this.#pick;
    const { reports } = this.#link.receiver.decode(structuredClone(this.#link.sender.encode(this.#probe.collect())));
    this.#devices = reports.map((report, at) => this.#stateOf(report, this.#devices[at]));
    if (pick(3) === 0) this.#containers = snapshot.containerReadings.filter(() => pick(3) > 0);
    if (pick(3) === 0 && this.#usage !== undefined)
      this.#usage = { ...this.#usage, containers: (snapshot.usage?.containers ?? []).filter(() => pick(4) > 0) };
    return { ...snapshot, devices: this.#devices, containerReadings: this.#containers, ...(this.#usage && { usage: this.#usage }) };
  }

  #stateOf({ device, read }: DeviceReport<Readings>, before: DeviceState | undefined): DeviceState {
    const pick = this.#pick;
    const verdict = before === undefined || pick(4) === 0 ? this.#verdict() : before.verdict;
    const readings = read === undefined ? Readings.NONE : declared(read.readings);
    return {
      ...state(device, { verdict }),
      readings,
      verdict,
      readAtMs: pick(5) * 1_000,
      stale: pick(6) === 0,
      ...(pick(6) === 0 && { missingSinceMs: 5 }),
    };
  }

  #verdict(): Verdict {
    const base = { class: 'latched', severity: 'degraded', remedy: 'inspect', message: 'm', sinceMs: 1 } as const;
    const conditions = Array.from({ length: this.#pick(3) }, (_, n) => ({ ...base, type: `T${n}`, reason: `R${this.#pick(2)}` }));
    return { state: this.#pick(2) === 0 ? 'healthy' : 'degraded', sinceMs: this.#pick(3), conditions };
  }
}

const bytes = async (page: ReturnType<typeof createExposition>, format: Format): Promise<string> =>
  Buffer.concat((await page.page(format)).plain)
    .toString()
    .replace(/^(process|nodejs)_.*\n/gm, '');

describe('a page that is made from the page before', () => {
  it.each(Array.from({ length: 15 }, (_, seed) => seed + 1))(
    'is that of an exposition that never saw another snapshot (seed %i)',
    async (seed) => {
      const pick = seeded(seed);
      const snapshots = new Snapshots(pick);
      let latest = snapshots.next();
      const sources = { families, snapshot: () => latest, agent: () => stats, hasUuids: seed % 2 === 0 };
      const [kept, other] = [createExposition(sources), createExposition(sources)];
      for (let turn = 0; turn < 40; turn += 1) {
        latest = snapshots.next();
        expect(kept.devices()).toBe(createExposition(sources).devices());
        if (pick(8) === 0) expect(await bytes(other, 'openmetrics')).toBe(await bytes(createExposition(sources), 'openmetrics'));
      }
    },
  );
});
