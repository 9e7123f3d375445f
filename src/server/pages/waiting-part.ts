import { type Html, html } from '../../board/html.ts';
import { highest, linePath } from '../../board/spark.ts';
import { ratesOf, TREND_MS } from '../../board/trend.ts';
import { waitingText } from '../../board/waiting-text.ts';
import type { DeviceHistory } from '../../incidents/history.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { ContainerWaiting } from '../../model/usage.ts';

const [WIDTH, HEIGHT] = [600, 40];
const BYTES: readonly string[] = [shared.receivedBytes.name, shared.transmittedBytes.name];

/** Whether each container moves on, since when not, and its steps as they were. undefined when the pod has no container that is judged. */
export function waitingPart(
  waiting: readonly ContainerWaiting[],
  historyOf: (key: string) => DeviceHistory | undefined,
  nowMs: number,
): Html | undefined {
  if (waiting.length === 0) return undefined;
  return html`<h2>Does it move on?</h2>${waiting.map(
    (one) => html`<p><b>${one.container}</b> ${waitingText(one, nowMs)}</p>${strip(one, historyOf)}`,
  )}`;
}

/** Each read of the last half hour: means of longer times would hide the steps. */
function strip({ container, devices }: ContainerWaiting, historyOf: (key: string) => DeviceHistory | undefined): Html | undefined {
  const history = devices.map(historyOf).find((one) => one !== undefined && one.times.length > 1);
  if (history === undefined) return undefined;
  const bytes = sumOf(
    history.series.filter(({ metric }) => BYTES.includes(metric)).map(({ values, reads }) => ratesOf(history.times, values, reads)),
    history.times.length,
  );
  const watts = history.series.find(({ metric }) => metric === shared.power.name)?.values ?? [];
  const [what, values] = bytes.some((value) => value !== null) ? (['Bytes', bytes] as const) : (['Power', watts] as const);
  if (values.length === 0) return undefined;
  const path = linePath(values, WIDTH, HEIGHT, 0, highest(values));
  const minutes = TREND_MS / 60_000;
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${what} of the first GPU of ${container} over the last ${minutes} minutes"><path d="${path}"/></svg>`;
}

/** null where one of the series has no value. */
function sumOf(columns: readonly (readonly (number | null)[])[], length: number): readonly (number | null)[] {
  if (columns.length === 0) return [];
  return Array.from({ length }, (_, at) =>
    columns.reduce((sum: number | null, column) => {
      const value = column[at];
      return sum === null || value === null || value === undefined ? null : sum + value;
    }, 0),
  );
}
