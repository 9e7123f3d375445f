import type { DeviceView } from './device-view.ts';
import { type Html, html } from './html.ts';
import type { Trend } from './trend.ts';

const HEIGHT = 20;

/** The first reading of a device over half an hour, as a line. Its height is the limit, or the highest value where no limit is known. */
export function sparkline({ shown: [first] }: Pick<DeviceView, 'shown'>, trend: Trend | undefined): Html | undefined {
  if (first === undefined || trend === undefined || trend.every((value) => value === null)) return undefined;
  // It begins at the first value: an agent that has just started has no half hour to show.
  const known = trend.slice(
    Math.min(
      trend.length - 2,
      trend.findIndex((one) => one !== null),
    ),
  );
  const path = linePath(known, known.length, HEIGHT, 0, first.limit ?? highest(known));
  return html`<svg class="spark" viewBox="0 0 ${known.length} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><path d="${path}"/></svg>`;
}

/** A path through the known values, with gaps where there are none. A value alone in a gap becomes a short line. */
export function linePath(values: Trend, width: number, height: number, low: number, high: number): string {
  const step = width / Math.max(1, values.length);
  const span = high > low ? high - low : 1;
  let isDrawing = false;
  return values
    .map((value, at) => {
      if (value === null) {
        isDrawing = false;
        return '';
      }
      const share = Math.min(1, Math.max(0, (value - low) / span));
      const x = rounded(at * step);
      const y = rounded(height - 1 - share * (height - 2));
      const text = isDrawing ? `L${x} ${y}` : `M${x} ${y}h${rounded(step)}`;
      isDrawing = true;
      return text;
    })
    .join('');
}

export const highest = (values: Trend): number => values.reduce((most: number, value) => Math.max(most, value ?? most), 0);
const rounded = (value: number): number => Math.round(value * 10) / 10;
