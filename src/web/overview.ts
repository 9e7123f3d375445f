import type { Board } from '../board/board.ts';
import type { DeviceView } from '../board/device-view.ts';
import type { Html } from '../board/html.ts';
import { chipsHtml, podsHtml, problemsHtml, sayHtml, shownText, titleOf, unresolvedHtml } from '../board/overview-html.ts';
import { pictureHtml } from '../board/places-html.ts';
import { sentenceOf, worstOf } from '../board/summary.ts';
import { TREND_POINTS, TREND_STEP_MS, type Trend } from '../board/trend.ts';
import { type BoardView, filterText, parseView, viewOf, viewQuery } from '../board/view.ts';
import { announce } from './ages.ts';
import { enhance, showWorst } from './frame.ts';
import type { BoardEvent } from './stream.ts';
import { DeviceTable } from './table.ts';

/** The page of all devices, kept live row by row. */
export class OverviewPage {
  readonly #table: DeviceTable;
  readonly #form: HTMLFormElement | null;
  readonly #trends = new Trends();
  readonly #parts = new Map<string, string>();
  #sentence: string | undefined;
  #devices = new Map<string, DeviceView>();
  #head: Omit<Board, 'devices'> | undefined;
  #view: BoardView;
  #isDrawing = false;
  #isTrendNew = false;
  /** Until the trends are here, the page stays as the server made it: each row would lose the time before. */
  #isReady = false;

  constructor(table: HTMLTableElement) {
    this.#table = new DeviceTable(table);
    this.#form = document.querySelector<HTMLFormElement>('form.filter');
    this.#view = parseView(Object.fromEntries(new URLSearchParams(location.search))).view;
    this.#form?.querySelector('button')?.setAttribute('hidden', '');
    this.#form?.addEventListener('input', () => this.#filter());
    this.#form?.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#filter();
    });
    table.addEventListener('click', (event) => this.#sort(event));
    window.addEventListener('popstate', () => {
      this.#view = parseView(Object.fromEntries(new URLSearchParams(location.search))).view;
      this.#fillForm();
      this.#draw();
    });
    void this.#loadTrends();
  }

  took(event: BoardEvent): void {
    if (event.kind === 'board') {
      const { devices, ...head } = event.board;
      this.#head = head;
      this.#devices = new Map(devices.map((device) => [device.key, device]));
    } else {
      this.#head = event.head;
      for (const device of event.devices) this.#devices.set(device.key, device);
      for (const key of event.removed) this.#devices.delete(key);
    }
    if (this.#trends.take(this.#devices.values(), Date.now())) this.#isTrendNew = true;
    this.#draw();
  }

  /** Several changes within one frame are drawn once. */
  #draw(): void {
    if (this.#isDrawing || !this.#isReady) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.#drawNow();
    });
  }

  #drawNow(): void {
    if (this.#head === undefined) return;
    const board: Board = { ...this.#head, devices: [...this.#devices.values()] };
    const sections = viewOf(board, this.#view);
    this.#replace('say', sayHtml(board));
    this.#replace('map', pictureHtml(board, this.#view));
    this.#replace('pods', podsHtml(board));
    this.#replace('chips', chipsHtml(board, this.#view));
    this.#replace('problems', problemsHtml(board));
    this.#replace('unresolved', unresolvedHtml(board));
    enhance();
    const words = shownText(board, sections);
    const shown = document.getElementById('shown');
    if (shown !== null && shown.textContent !== words) shown.textContent = words;
    this.#table.show(sections, this.#view, (key) => this.#trends.of(key), Date.parse(board.now), this.#isTrendNew);
    this.#isTrendNew = false;
    document.title = titleOf(board);
    showWorst(worstOf(board));
    // A screen reader gets the new sentence, and nothing while it stays.
    const sentence = sentenceOf(board);
    if (this.#sentence !== undefined && this.#sentence !== sentence) announce(`${sentence}.`);
    this.#sentence = sentence;
  }

  #replace(id: string, { text: markup }: Html): void {
    if (this.#parts.get(id) === markup) return;
    const element = document.getElementById(id);
    if (element === null || element.contains(document.activeElement)) return;
    this.#parts.set(id, markup);
    element.innerHTML = markup;
  }

  #filter(): void {
    if (this.#form === null) return;
    const values = Object.fromEntries(new FormData(this.#form));
    this.#use(parseView({ sort: this.#view.sort, ...values }).view);
  }

  #sort(event: MouseEvent): void {
    const link = (event.target as Element | null)?.closest<HTMLElement>('a[data-sort]');
    if (link?.dataset.sort === undefined || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.#use(parseView({ ...this.#view, sort: link.dataset.sort }).view);
    this.#fillForm();
  }

  /** The address has the view, so that it can be sent to somebody. */
  #use(view: BoardView): void {
    this.#view = view;
    history.replaceState(null, '', `${location.pathname}${viewQuery(view)}`);
    this.#draw();
  }

  #fillForm(): void {
    for (const field of this.#form?.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select') ?? [])
      field.value = field.name === 'text' ? filterText(this.#view) : String(this.#view[field.name as keyof BoardView] ?? '');
  }

  async #loadTrends(): Promise<void> {
    const answer = fetch('/api/v1/devices/trends', { signal: AbortSignal.timeout(TRENDS_MS) });
    const body = await answer.then((response) => (response.ok ? response.json() : undefined)).catch(() => undefined);
    const { trends } = (body ?? {}) as { readonly trends?: Readonly<Record<string, Trend>> };
    if (trends !== undefined) this.#trends.load(trends);
    this.#isTrendNew = trends !== undefined;
    this.#isReady = true;
    this.#draw();
  }
}

/** An answer that takes longer must not hold back the present state. */
const TRENDS_MS = 5_000;

/** The trend of each row, in memory that does not grow: a fixed number of points for each device that is listed. */
class Trends {
  readonly #points = new Map<string, (number | null)[]>();
  #step: number | undefined;

  of(key: string): Trend | undefined {
    return this.#points.get(key);
  }

  load(trends: Readonly<Record<string, Trend>>): void {
    for (const [key, trend] of Object.entries(trends)) this.#points.set(key, [...trend].slice(-TREND_POINTS));
  }

  /** Adds the present values when the time of a new point came. Returns true when it did. */
  take(rows: Iterable<DeviceView>, nowMs: number): boolean {
    const step = Math.floor(nowMs / TREND_STEP_MS);
    const passed = this.#step === undefined ? 1 : step - this.#step;
    if (passed <= 0) return false;
    this.#step = step;
    const listed = new Set<string>();
    for (const { key, shown } of rows) {
      listed.add(key);
      const points = this.#points.get(key) ?? Array.from({ length: TREND_POINTS }, () => null);
      // Steps without data stay empty: a hidden page gets none.
      for (let n = 1; n < Math.min(passed, TREND_POINTS); n += 1) points.push(null);
      points.push(shown[0]?.value ?? null);
      this.#points.set(key, points.slice(-TREND_POINTS));
    }
    for (const key of this.#points.keys()) if (!listed.has(key)) this.#points.delete(key);
    return true;
  }
}
