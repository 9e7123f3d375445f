import type { Reading } from '../model/metric.ts';
import type { SharedReading } from '../model/shared-metrics.ts';
import { shared } from '../model/shared-metrics.ts';
import { against, type ChosenReading, grown, type Known, NO_RATE, plain } from './chosen-reading.ts';
import { rateText, readingText } from './units.ts';

/** How each reading is made of shared metrics; undefined where the device does not report it. */
export const SHARED: Readonly<Record<SharedReading, (known: Known) => ChosenReading | undefined>> = {
  busy({ of }) {
    const engines = of(shared.utilization.name);
    const main = engines.find(({ labels }) => labels?.engine === 'gpu') ?? highest(engines);
    return main && plain('Busy', main, Number(main.value));
  },
  memory({ of }) {
    const [used] = of(shared.memoryUsed.name);
    const [total] = of(shared.memoryTotal.name);
    return used && against('Memory', used, total);
  },
  power({ of }) {
    const [drawn] = of(shared.power.name);
    const limits = of(shared.powerLimit.name);
    const limit = ['enforced', 'cap', 'max', 'maximum', 'crit', 'default'].flatMap(
      (name) => limits.find(({ labels }) => labels?.limit === name) ?? [],
    )[0];
    return drawn && against('Power', drawn, limit);
  },
  /** The sensor that is closest to the limit at which the device acts, otherwise the hottest one. */
  temperature({ of }) {
    const limits = of(shared.temperatureLimit.name).filter(({ labels }) => !/min|low|hyst|target/.test(labels?.limit ?? ''));
    const found = of(shared.temperature.name).map((sensor) =>
      against('Temperature', sensor, lowest(limits.filter(({ labels, value }) => labels?.sensor === sensor.labels?.sensor && value > 0))),
    );
    return found.toSorted((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0) || (b.value ?? 0) - (a.value ?? 0))[0];
  },
  in: (known) => moved('In', known.of(shared.receivedBytes.name), known),
  out: (known) => moved('Out', known.of(shared.transmittedBytes.name), known),
  traffic(known) {
    const directions = { in: known.of(shared.receivedBytes.name), out: known.of(shared.transmittedBytes.name) };
    const series = [...directions.in, ...directions.out];
    if (series.length === 0) return undefined;
    const value = known.rate(series);
    const source = { label: 'Traffic', series, isRate: true };
    if (value === undefined) return { ...source, text: NO_RATE };
    const texts = Object.entries(directions).flatMap(([name, list]) =>
      list.length === 0 ? [] : [`${rateText(shared.receivedBytes.name, known.rate(list) ?? 0)} ${name}`],
    );
    return { ...source, text: texts.join(', '), value };
  },
  link({ of }) {
    const links = of(shared.linkUp.name);
    if (links.length === 0) return undefined;
    const up = links.filter(({ value }) => Number(value) === 1).length;
    const most = speedOf(of(shared.linkSpeed.name));
    const speed = most > 0 ? `, ${readingText(shared.linkSpeed.name, most)}` : '';
    const text = up === links.length ? `up${speed}` : up === 0 ? 'down' : `${up} of ${links.length} up`;
    return { label: 'Link', text, value: up, series: links, isRate: false };
  },
};

/** A total since the driver was loaded does not show what happens now. */
const moved = (label: string, series: readonly Reading[], known: Known): ChosenReading | undefined =>
  series.length === 0 ? undefined : grown(label, series, known, speedOf(known.of(shared.linkSpeed.name)));

const speedOf = (speeds: readonly Reading[]): number => speeds.reduce((sum, { value }) => sum + Number(value), 0);
const lowest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(a.value) - Number(b.value))[0];
const highest = (readings: readonly Reading[]): Reading | undefined => readings.toSorted((a, b) => Number(b.value) - Number(a.value))[0];
