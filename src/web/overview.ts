import type { Html } from '../board/html.ts';
import { problemsHtml, shownText, tilesHtml, unresolvedHtml } from '../board/overview-html.ts';
import type { Board, BoardRow } from '../board/row.ts';
import type { Trend } from '../board/trend.ts';
import { type BoardView, parseView, viewOf, viewQuery } from '../board/view.ts';
import { STATE_NAMES } from '../board/words.ts';
import { announce } from './ages.ts';
import type { BoardEvent } from './stream.ts';
import { DeviceTable } from './table.ts';
import { Trends } from './trends.ts';

/** The page of all devices, kept live row by row. */
export class OverviewPage {
  readonly #table: DeviceTable;
  readonly #form: HTMLFormElement | null;
  readonly #trends = new Trends();
  readonly #parts = new Map<string, string>();
  readonly #title = document.title;
  #rows = new Map<string, BoardRow>();
  #head: Omit<Board, 'rows'> | undefined;
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
      const { rows, ...head } = event.board;
      this.#tellChanges(rows);
      this.#head = head;
      this.#rows = new Map(rows.map((row) => [row.key, row]));
    } else {
      this.#tellChanges(event.rows);
      this.#head = event.head;
      for (const row of event.rows) this.#rows.set(row.key, row);
      for (const key of event.removed) this.#rows.delete(key);
    }
    if (this.#trends.take(this.#rows.values(), Date.now())) this.#isTrendNew = true;
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
    const board: Board = { ...this.#head, rows: [...this.#rows.values()] };
    const sections = viewOf(board, this.#view);
    this.#replace('tiles', tilesHtml(board));
    this.#replace('problems', problemsHtml(board));
    this.#replace('unresolved', unresolvedHtml(board));
    text('shown', shownText(board.rows, sections));
    text('sequence', String(board.sequence));
    this.#table.show(sections, this.#view, (key) => this.#trends.of(key), board.nowMs, this.#isTrendNew);
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
  #tellChanges(rows: readonly BoardRow[]): void {
    const changes = rows.flatMap(({ key, name, state, conditions: [first] }) => {
      const before = this.#rows.get(key);
      if (before === undefined || before.state === state) return [];
      return [`${name} is ${STATE_NAMES[state].toLowerCase()}${first === undefined || state === 'healthy' ? '' : `: ${first.name}`}.`];
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
    const response = await fetch('/api/board/trends').catch(() => undefined);
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
