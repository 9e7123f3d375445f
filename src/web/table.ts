import type { DeviceView } from '../board/device-view.ts';
import { headHtml, MOST_ROWS, sectionTitle, type TrendsByKey, tableRows } from '../board/overview-html.ts';
import type { BoardSection, BoardView } from '../board/view.ts';

/** The rows of one device with what they were made of. */
interface DeviceRows {
  elements: HTMLTableRowElement[];
  row: DeviceView;
  place: string;
}

/** Keeps the table of devices equal to a view. Only cells that changed are replaced, so that focus and selection stay. */
export class DeviceTable {
  readonly #table: HTMLTableElement;
  #shown = new Map<string, DeviceRows>();
  #head = '';

  constructor(table: HTMLTableElement) {
    this.#table = table;
  }

  show(sections: readonly BoardSection[], view: BoardView, trendOf: TrendsByKey, nowMs: number, isTrendNew: boolean): void {
    this.#showHead(view);
    const next = new Map<string, DeviceRows>();
    let left = MOST_ROWS;
    const bodies = sections.map(({ title, rows }, at) => {
      const all = tableRows(rows, view);
      const shown = all.slice(0, Math.max(0, left));
      left -= all.length;
      const elements: Element[] = title === undefined ? [] : elementsOf(sectionTitle(title).text);
      for (const { key, row, place, html } of shown) {
        const name = `${at} ${key}`;
        const entry = this.#shown.get(name);
        if (entry?.row === row && entry.place === place && !isTrendNew) next.set(name, entry);
        else next.set(name, updated(entry, elementsOf(html(trendOf, nowMs).text), row, place));
        elements.push(...(next.get(name) as DeviceRows).elements);
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

  /** Moves as few elements as possible: one that is in its place is not touched, because a moved element loses the focus. */
  #place(bodies: readonly (readonly Element[])[]): void {
    while (this.#table.tBodies.length > Math.max(1, bodies.length)) this.#table.tBodies[this.#table.tBodies.length - 1]?.remove();
    const focused = document.activeElement;
    const link = this.#table.contains(focused) ? focused?.getAttribute('href') : undefined;
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
    // The first rows take the place of those of the server, whose links go with them.
    const isGone = focused?.isConnected === false && typeof link === 'string';
    const again = isGone ? this.#table.querySelector(`a[href="${CSS.escape(link)}"]`) : focused;
    if (again instanceof HTMLElement && again.isConnected && again !== document.activeElement) again.focus();
  }
}

/** Takes over the cells that changed. The second row, with what is wrong, comes and goes. */
function updated(entry: DeviceRows | undefined, fresh: HTMLTableRowElement[], row: DeviceView, place: string): DeviceRows {
  if (entry === undefined) return { elements: fresh, row, place };
  const elements = fresh.map((one, at) => {
    const old = entry.elements[at];
    if (old === undefined || old.cells.length !== one.cells.length) return one;
    old.className = one.className;
    for (const [column, cell] of [...one.cells].entries()) {
      const before = old.cells[column] as HTMLTableCellElement;
      // A link that somebody is about to open stays; the next change comes soon.
      if (before.innerHTML !== cell.innerHTML && !before.contains(document.activeElement)) before.innerHTML = cell.innerHTML;
    }
    return old;
  });
  return Object.assign(entry, { elements, row, place });
}

/** The markup comes from the same escaping code as the page of the server. */
function elementsOf(markup: string): HTMLTableRowElement[] {
  const template = document.createElement('template');
  template.innerHTML = markup;
  return [...template.content.children] as HTMLTableRowElement[];
}
