import { parentKey } from '../board/device-view.ts';
import { keepAges, useServerTime } from './ages.ts';
import { OverviewPage } from './overview.ts';
import { type BoardEvent, followBoard } from './stream.ts';

/** Keeps a page live. Without this script the page is complete, too, but shows one moment. */
function begin(): void {
  const table = document.querySelector<HTMLTableElement>('#devices');
  const mode = document.body.dataset.live;
  const page = mode === 'board' && table !== null ? new OverviewPage(table) : new ReloadedPage();
  keepAges();
  if (mode === 'board') listenToKeys();
  say('Connecting …', 'waits');
  followBoard('/api/v1/devices/watch', {
    took: (event) => {
      useServerTime(Date.parse(event.kind === 'board' ? event.board.now : event.head.now));
      say('Live', 'live');
      if (page instanceof OverviewPage) page.took(event);
      else if (isAboutThisPage(event)) page.changed();
    },
    lost: (delayMs) =>
      say(
        `Not live: the agent does not answer. Next try in ${Math.ceil(delayMs / 1_000)} s. The page shows the last state that it got.`,
        'lost',
      ),
  });
}

/** The page of one device changes with the device and its parts; other pages with everything. */
function isAboutThisPage(event: BoardEvent): boolean {
  const [, kind, family, id] = location.pathname.split('/').map(decodeURIComponent);
  if (event.kind === 'board' || kind !== 'devices') return true;
  const key = `${family}/${id}`;
  return event.removed.includes(key) || event.devices.some((one) => one.key === key || parentKey(one) === key);
}

function say(words: string, state: 'live' | 'waits' | 'lost'): void {
  const element = document.getElementById('live');
  if (element === null) return;
  if (element.textContent !== words) element.textContent = words;
  element.dataset.state = state;
}

/** Keys of the page of all devices: `/` filters, arrows or j and k move between devices, Escape leaves the filter. */
function listenToKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement | null;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (event.key === 'Escape' && isTyping) return target.blur();
    if (isTyping) return;
    if (event.key === '/') {
      event.preventDefault();
      document.getElementById('filter')?.focus();
    }
    const step = event.key === 'ArrowDown' || event.key === 'j' ? 1 : event.key === 'ArrowUp' || event.key === 'k' ? -1 : 0;
    if (step !== 0 && move(step)) event.preventDefault();
  });
}

/** Moves the focus to the next device; from elsewhere to the first one. */
function move(step: number): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('#devices a.id')];
  const row = document.activeElement?.closest('tr');
  const at = links.findIndex((link) => link.closest('tr') === row);
  // Without a device in focus an arrow scrolls the page, as everywhere.
  if (at < 0 && step < 0) return false;
  const next = links[at + step];
  next?.focus();
  return next !== undefined;
}

/** Least time between two loads of a page. */
const SPACING_MS = 2_000;

/** Loads a page again and takes the parts that changed. */
class ReloadedPage {
  #isLoading = false;
  #isWaiting = false;
  #loadedAtMs = 0;

  /** Something changed. Pages are loaded one after the other, and not too often. */
  changed(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    window.setTimeout(() => void this.#load(), Math.max(0, this.#loadedAtMs + SPACING_MS - Date.now()));
  }

  async #load(): Promise<void> {
    this.#isWaiting = false;
    if (this.#isLoading || document.hidden) return;
    this.#isLoading = true;
    this.#loadedAtMs = Date.now();
    const response = await fetch(location.href).catch(() => undefined);
    const text = response?.ok === true ? await response.text().catch(() => '') : '';
    this.#isLoading = false;
    if (text === '') return;
    const fresh = new DOMParser().parseFromString(text, 'text/html');
    for (const part of document.querySelectorAll<HTMLElement>('[data-part]')) {
      // A chart with axes takes its data itself.
      if (part.querySelector('.uplot') !== null || part.contains(document.activeElement)) continue;
      const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
      if (next !== null && next.innerHTML !== part.innerHTML) part.innerHTML = next.innerHTML;
    }
  }
}

// At the end: the classes above exist only when the module has come this far.
begin();
