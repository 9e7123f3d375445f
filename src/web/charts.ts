import uPlot from 'uplot';
import { TREND_MS, withGaps } from '../board/trend.ts';
import { rateText, readingText } from '../board/units.ts';

interface HistoryAnswer {
  readonly times: readonly number[];
  readonly series: readonly {
    readonly metric: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly isRate: boolean;
    readonly values: readonly (number | null)[];
  }[];
}

const HEIGHT = 120;
const INTERVAL_MS = 5_000;
const MOST_LINES = 6;

/** Replaces the drawings of a device page by charts with axes and values under the pointer, and keeps them live. */
class Charts {
  readonly #address: string;
  readonly #plots = new Map<string, { readonly plot: uPlot; readonly lines: number }>();

  constructor(device: string) {
    this.#address = `/api/v1/devices${devicePart(device)}/history`;
    window.addEventListener('resize', () => {
      for (const { plot } of this.#plots.values()) plot.setSize({ width: widthOf(plot.root), height: HEIGHT });
    });
  }

  async load(): Promise<void> {
    if (document.hidden) return;
    const response = await fetch(this.#address).catch(() => undefined);
    if (response?.ok !== true) return;
    const history = (await response.json()) as HistoryAnswer;
    for (const figure of document.querySelectorAll<HTMLElement>('figure[data-metric]')) this.#show(figure, history);
  }

  #show(figure: HTMLElement, { times, series }: HistoryAnswer): void {
    const metric = figure.dataset.metric ?? '';
    const lines = series.filter((one) => one.metric === metric && one.values.some((value) => value !== null)).slice(0, MOST_LINES);
    const filled = withGaps(
      times,
      lines.map(({ values }) => values),
    );
    const data = [filled.times.map((time) => time / 1_000), ...filled.columns] as uPlot.AlignedData;
    const known = this.#plots.get(metric);
    if (known !== undefined && known.lines === lines.length) {
      known.plot.setData(data);
      return;
    }
    const place = figure.querySelector<HTMLElement>('.plot');
    if (place === null || lines.length === 0) return;
    known?.plot.destroy();
    place.replaceChildren();
    figure.querySelector('.legend')?.remove();
    this.#plots.set(metric, { plot: new uPlot(optionsFor(metric, lines, widthOf(place)), data, place), lines: lines.length });
  }
}

function optionsFor(metric: string, lines: HistoryAnswer['series'], width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const isRate = lines.some((line) => line.isRate);
  const text = (value: number | null): string =>
    value === null ? 'unknown' : isRate ? rateText(metric, value) : readingText(metric, value);
  const clock = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(11, 19);
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
  return {
    width,
    height: HEIGHT,
    scales: {
      x: { range: () => [(Date.now() - TREND_MS) / 1_000, Date.now() / 1_000] },
      y: { range: (_plot, _low, high) => [0, metric.endsWith('_ratio') ? 1 : high > 0 ? high * 1.05 : 1] },
    },
    axes: [
      { ...axis, values: (_plot, splits) => splits.map((seconds) => clock(seconds).slice(0, 5)) },
      { ...axis, size: 78, values: (_plot, splits) => splits.map((value) => text(value)) },
    ],
    series: [
      { label: 'UTC', value: (plot, seconds) => clock(seconds ?? plot.data[0].at(-1) ?? 0) },
      ...lines.map((line, at) => ({
        label: labelText(line.labels),
        stroke: color(`--line-${at}`),
        width: 1.5,
        spanGaps: false,
        // Without a pointer on the chart, the legend has the latest values.
        value: (plot: uPlot, value: number | null, series: number, index: number | null) =>
          text(index === null ? (plot.data[series]?.at(-1) ?? null) : value),
      })),
    ],
  };
}

/** The key has the family before the first slash. */
function devicePart(key: string): string {
  const at = key.indexOf('/');
  return `/${encodeURIComponent(key.slice(0, at))}/${encodeURIComponent(key.slice(at + 1))}`;
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value))
    .join(', ') || 'now';

const widthOf = (element: Element): number => Math.max(200, Math.floor((element.closest('figure') ?? element).clientWidth - 16));

const device = document.querySelector<HTMLElement>('.charts')?.dataset.device;
if (device !== undefined) {
  const charts = new Charts(device);
  void charts.load();
  window.setInterval(() => void charts.load(), INTERVAL_MS);
}
