import type { DeviceView } from '../board/device-view.ts';
import { headHtml, MOST_ROWS, sectionTitle, type TrendsByKey } from '../board/overview-html.ts';
import { rowHtml } from '../board/row-html.ts';
import type { BoardSection, BoardView, ViewRow } from '../board/view.ts';

/** A row of the table with what it was made of. */
interface Shown {
  readonly element: HTMLTableRowElement;
  row: DeviceView;
  place: string;
}

/** Keeps the table of devices equal to a view. Only cells that changed are replaced, so that focus and selection stay. */
export class DeviceTable {
  readonly #table: HTMLTableElement;
  #shown = new Map<string, Shown>();
  #head = '';

  constructor(table: HTMLTableElement) {
    this.#table = table;
  }

  show(sections: readonly BoardSection[], view: BoardView, trendOf: TrendsByKey, nowMs: number, isTrendNew: boolean): void {
    this.#showHead(view);
    const next = new Map<string, Shown>();
    let left = MOST_ROWS;
    const bodies = sections.map(({ title, rows }, at) => {
      const shown = rows.slice(0, Math.max(0, left));
      left -= rows.length;
      const elements: Element[] = title === undefined ? [] : [elementOf(sectionTitle(title).text)];
      for (const one of shown) {
        const name = `${at} ${one.row.key}`;
        const kept = this.#shown.get(name);
        const entry = kept ?? { element: elementOf(rowHtml(one, trendOf(one.row.key), nowMs).text), row: one.row, place: placeOf(one) };
        if (kept !== undefined) this.#update(kept, one, trendOf, nowMs, isTrendNew);
        next.set(name, entry);
        elements.push(entry.element);
      }
      return elements;
    });
    this.#shown = next;
    this.#place(bodies);
  }

  #showHead(view: BoardView): void {
    const head = headHtml(view).text;
    if (head === this.#head) return;
    this.#head = head;
    const element = this.#table.tHead;
    const focused = (document.activeElement as HTMLElement | null)?.dataset.sort;
    if (element !== null) element.innerHTML = head;
    if (focused !== undefined) element?.querySelector<HTMLElement>(`[data-sort="${focused}"]`)?.focus();
  }

  #update(shown: Shown, one: ViewRow, trendOf: TrendsByKey, nowMs: number, isTrendNew: boolean): void {
    const place = placeOf(one);
    if (shown.row === one.row && shown.place === place && !isTrendNew) return;
    shown.row = one.row;
    shown.place = place;
    const fresh = elementOf(rowHtml(one, trendOf(one.row.key), nowMs).text) as HTMLTableRowElement;
    shown.element.className = fresh.className;
    for (const [at, cell] of [...fresh.cells].entries()) {
      const old = shown.element.cells[at];
      if (old !== undefined && old.innerHTML !== cell.innerHTML && !hasFocus(old)) old.innerHTML = cell.innerHTML;
    }
  }

  /** Moves as few elements as possible: one that is in its place is not touched, because a moved element loses the focus. */
  #place(bodies: readonly (readonly Element[])[]): void {
    while (this.#table.tBodies.length > bodies.length) this.#table.tBodies[this.#table.tBodies.length - 1]?.remove();
    const focused = document.activeElement;
    for (const [at, elements] of bodies.entries()) {
      const body = this.#table.tBodies[at] ?? this.#table.createTBody();
      const kept = new Set(elements);
      for (const child of [...body.children]) if (!kept.has(child)) child.remove();
      let here: Element | null = body.firstElementChild;
      for (const element of elements) {
        if (element === here) here = here.nextElementSibling;
        else body.insertBefore(element, here);
      }
    }
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus();
  }
}

/** A link that somebody is about to open stays; the next change comes soon. */
const hasFocus = (cell: Element): boolean => cell.contains(document.activeElement);

const placeOf = ({ depth, distance }: ViewRow): string => `${depth} ${distance ?? ''}`;

/** The markup comes from the same escaping code as the page of the server. */
function elementOf<T extends Element = HTMLTableRowElement>(markup: string): T {
  const template = document.createElement('template');
  template.innerHTML = markup;
  return template.content.firstElementChild as T;
}
