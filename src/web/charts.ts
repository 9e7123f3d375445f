import { CHART_HEIGHT, CHART_WIDTH } from '../board/chart-html.ts';
import { clockText, rateText, readingText } from '../board/units.ts';

/** Shows the values under the pointer: a line in all charts of the page, and the values in their legends. Without a pointer, the present ones. */
export function followCharts(): void {
  document.addEventListener('pointermove', ({ target, clientX }) => {
    const plot = target instanceof Element ? target.closest('svg.plot[data-from]') : null;
    const { left, width } = plot?.getBoundingClientRect() ?? { left: 0, width: 0 };
    showAt(plot === null || width === 0 ? undefined : (clientX - left) / width);
  });
}

let isShown = false;

function showAt(share: number | undefined): void {
  if (share === undefined && !isShown) return;
  isShown = share !== undefined;
  for (const plot of document.querySelectorAll<SVGSVGElement>('svg.plot[data-from]')) {
    const { from = '', until = '' } = plot.dataset;
    const cursor = plot.querySelector('.cursor');
    const note = plot.closest('.card')?.querySelector<HTMLElement>('.at');
    if (share === undefined) cursor?.setAttribute('visibility', 'hidden');
    else {
      const x = `${(share * 100).toFixed(2)}%`;
      cursor?.setAttribute('visibility', 'visible');
      cursor?.setAttribute('x1', x);
      cursor?.setAttribute('x2', x);
    }
    const atMs = Number(from) + (share ?? 0) * (Number(until) - Number(from));
    if (note !== null && note !== undefined) {
      note.dataset.now ??= note.textContent ?? '';
      note.textContent = share === undefined ? note.dataset.now : clockText(atMs, Number(until));
    }
    showValues(plot, share);
  }
}

function showValues(plot: SVGSVGElement, share: number | undefined): void {
  const values = plot.closest('.chart, .lane')?.querySelectorAll<HTMLElement>('.legend b') ?? [];
  for (const [at, element] of [...values].entries()) {
    element.dataset.now ??= element.textContent ?? '';
    element.textContent = share === undefined ? element.dataset.now : textAt(plot, at, share * CHART_WIDTH);
  }
}

function textAt(plot: SVGSVGElement, at: number, x: number): string {
  const { metric = '', high = '', rate, words } = plot.dataset;
  const pathOf = (name: string): SVGPathElement | null => plot.querySelector(`path.${name}-${at}`);
  if (words !== undefined) {
    const isIn = (path: SVGPathElement): boolean => numbersOf(path).some(([from = 0, , width = 0]) => x >= from && x <= from + width);
    const path = [...plot.querySelectorAll<SVGPathElement>('path[data-state]')].findLast(isIn);
    return words.split('|')[Number(path?.dataset.state)] ?? 'unknown';
  }
  const text = (y: number): string => {
    const value = (1 - y / CHART_HEIGHT) * Number(high);
    return rate === undefined ? readingText(metric, value) : rateText(metric, value);
  };
  const y = yAt(pathOf('line')?.getAttribute('d') ?? '', x);
  if (y === undefined) return 'unknown';
  const band = pathOf('band');
  const half = Number(band?.getAttribute('stroke-width')) / 2;
  const [, most, low] = (band === null ? undefined : numbersOf(band).find(([middle = 0]) => Math.abs(middle - x) <= half)) ?? [];
  return most === undefined || low === undefined ? text(y) : `${text(y)} (${text(low)} to ${text(most)})`;
}

/** The numbers of each part of a path. */
const numbersOf = (path: SVGPathElement): readonly (readonly number[])[] =>
  (path.getAttribute('d') ?? '')
    .split('M')
    .slice(1)
    .map((part) => part.split(/[ LhV]/).map(Number));

/** Height of a path at a place; undefined in a gap. */
function yAt(path: string, x: number): number | undefined {
  for (const line of path.split('M').slice(1)) {
    const points = line.split('L').map((point) => point.split(' ').map(Number));
    const at = points.findLastIndex(([px = 0]) => px <= x);
    const [, y] = points[at] ?? [];
    const last = points.at(-1)?.[0] ?? 0;
    if (y !== undefined && x <= last + CHART_WIDTH / 60) return y;
  }
  return undefined;
}
