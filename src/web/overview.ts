import type { Board } from '../board/board.ts';
import { conditionsOf, type DeviceView, stateOf } from '../board/device-view.ts';
import type { Html } from '../board/html.ts';
import { problemsHtml, shownText, tilesHtml, unresolvedHtml } from '../board/overview-html.ts';
import { TREND_POINTS, TREND_STEP_MS, type Trend } from '../board/trend.ts';
import { type BoardView, parseView, viewOf, viewQuery } from '../board/view.ts';
import { STATE_NAMES } from '../board/words.ts';
import { conditionName } from '../model/condition-text.ts';
import { announce } from './ages.ts';
import type { BoardEvent } from './stream.ts';
import { DeviceTable } from './table.ts';

/** The page of all devices, kept live row by row. */
export class OverviewPage {
  readonly #table: DeviceTable;
  readonly #form: HTMLFormElement | null;
  readonly #trends = new Trends();
  readonly #parts = new Map<string, string>();
  readonly #title = document.title;
  #devices = new Map<string, DeviceView>();
  #head: Omit<Board, 'devices'> | undefined;
  #view: BoardView;
  #isDrawing = false;
  #isTrendNew = false;

  constructor(table: HTMLTableElement) {
    this.#table = new DeviceTable(table);
    this.#form = document.querySelector<HTMLFormElement>('form.filter');
    this.#view = parseView(Object.fromEntries(new URLSearchParams(location.search))).view;
    this.#form?.querySelector('button')?.classList.add('hidden');
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
      this.#tellChanges(devices);
      this.#head = head;
      this.#devices = new Map(devices.map((device) => [device.key, device]));
    } else {
      this.#tellChanges(event.devices);
      this.#head = event.head;
      for (const device of event.devices) this.#devices.set(device.key, device);
      for (const key of event.removed) this.#devices.delete(key);
    }
    if (this.#trends.take(this.#devices.values(), Date.now())) this.#isTrendNew = true;
    this.#draw();
  }

  /** Several changes within one frame are drawn once. */
  #draw(): void {
    if (this.#isDrawing) return;
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
    this.#replace('tiles', tilesHtml(board));
    this.#replace('problems', problemsHtml(board));
    this.#replace('unresolved', unresolvedHtml(board));
    text('shown', shownText(board.devices, sections));
    text('sequence', String(board.sequence));
    this.#table.show(sections, this.#view, (key) => this.#trends.of(key), Date.parse(board.now), this.#isTrendNew);
    this.#isTrendNew = false;
    const { unhealthy, missing, unknown, degraded } = board.counts.states;
    const sick = unhealthy + missing + unknown + degraded;
    document.title = sick === 0 ? this.#title : `(${sick}) ${this.#title}`;
  }

  #replace(id: string, { text: markup }: Html): void {
    if (this.#parts.get(id) === markup) return;
    const element = document.getElementById(id);
    if (element === null || element.contains(document.activeElement)) return;
    this.#parts.set(id, markup);
    element.innerHTML = markup;
  }

  /** A screen reader says what became of a device. */
  #tellChanges(devices: readonly DeviceView[]): void {
    const changes = devices.flatMap((device) => {
      const before = this.#devices.get(device.key);
      const state = stateOf(device);
      if (before === undefined || stateOf(before) === state) return [];
      const [first] = conditionsOf(device);
      const why = first === undefined || state === 'healthy' ? '' : `: ${conditionName(first)}`;
      return [`${device.name} is ${STATE_NAMES[state].toLowerCase()}${why}.`];
    });
    if (changes.length > 0) announce(changes.length > 5 ? `${changes.length} devices changed their state.` : changes.join(' '));
  }

  #filter(): void {
    if (this.#form === null) return;
    const values = Object.fromEntries(new FormData(this.#form));
    this.#use(parseView(values).view);
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
      field.value = String(this.#view[field.name as keyof BoardView] ?? '');
  }

  async #loadTrends(): Promise<void> {
    const response = await fetch('/api/v1/devices/trends').catch(() => undefined);
    if (response?.ok !== true) return;
    const { trends } = (await response.json()) as { readonly trends: Readonly<Record<string, Trend>> };
    this.#trends.load(trends);
    this.#isTrendNew = true;
    this.#draw();
  }
}

function text(id: string, words: string): void {
  const element = document.getElementById(id);
  if (element !== null && element.textContent !== words) element.textContent = words;
}

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
