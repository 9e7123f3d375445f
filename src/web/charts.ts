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
    const note = plot.closest('.chart')?.querySelector('.at');
    if (share === undefined) cursor?.setAttribute('visibility', 'hidden');
    else {
      const x = `${(share * 100).toFixed(2)}%`;
      cursor?.setAttribute('visibility', 'visible');
      cursor?.setAttribute('x1', x);
      cursor?.setAttribute('x2', x);
    }
    const atMs = Number(from) + (share ?? 0) * (Number(until) - Number(from));
    if (note !== null && note !== undefined) note.textContent = share === undefined ? '' : clockText(atMs, Number(until));
    showValues(plot, share);
  }
}

function showValues(plot: SVGSVGElement, share: number | undefined): void {
  const { metric = '', high = '', rate } = plot.dataset;
  const values = plot.closest('.chart')?.querySelectorAll<HTMLElement>('.legend b') ?? [];
  for (const [at, element] of [...values].entries()) {
    element.dataset.now ??= element.textContent ?? '';
    const y = share === undefined ? undefined : yAt(plot.querySelector(`path.line-${at}`)?.getAttribute('d') ?? '', share * CHART_WIDTH);
    const value = y === undefined ? undefined : (1 - y / CHART_HEIGHT) * Number(high);
    if (share === undefined) element.textContent = element.dataset.now;
    else element.textContent = value === undefined ? 'unknown' : rate === undefined ? readingText(metric, value) : rateText(metric, value);
  }
}

/** Height of a path at a place; undefined in a gap. */
function yAt(path: string, x: number): number | undefined {
  for (const line of path.split('M').slice(1)) {
    const points = line.split(/[Lh]/).map((point) => point.split(' ').map(Number));
    const at = points.findLastIndex(([px = 0]) => px <= x);
    const [, y] = points[at] ?? [];
    const last = points.at(-1)?.[0] ?? 0;
    if (y !== undefined && x <= last + CHART_WIDTH / 60) return y;
  }
  return undefined;
}
