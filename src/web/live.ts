import { parentKey } from '../board/device-view.ts';
import { clockText } from '../board/units.ts';
import { keepAges, serverTime, useServerTime } from './ages.ts';
import { followCharts } from './charts.ts';
import { enhance, moveOnMap, outlinePods, showWorst } from './frame.ts';
import { OverviewPage } from './overview.ts';
import { type BoardEvent, followBoard } from './stream.ts';

/** Keeps a page live. Without this script the page is complete, too, but shows one moment. */
function begin(): void {
  const table = document.querySelector<HTMLTableElement>('#devices');
  const mode = document.body.dataset.live;
  const page = mode === 'board' && table !== null ? new OverviewPage(table) : new ReloadedPage();
  keepAges();
  enhance();
  outlinePods();
  followCharts();
  if (mode === 'board') listenToKeys();
  if (mode === 'none') return;
  let lostMs: number | undefined;
  followBoard('/api/v1/devices/watch', {
    took: (event) => {
      const { now, takenAt } = event.kind === 'board' ? event.board : event.head;
      useServerTime(Date.parse(now));
      lostMs = undefined;
      delete document.body.dataset.lost;
      say(clockText(Date.parse(now), Date.parse(now)), 'live', Date.parse(takenAt));
      if (page instanceof OverviewPage) page.took(event);
      else if (isAboutThisPage(event)) page.changed();
    },
    lost: () => {
      lostMs ??= serverTime();
      say(`No answer since ${clockText(lostMs, lostMs)}. The page shows the last state that it got.`, 'lost');
      showWorst('unknown');
      document.body.dataset.lost = '';
    },
  });
}

/** The page of one device changes with the device and its parts; other pages with everything. */
function isAboutThisPage(event: BoardEvent): boolean {
  const [, kind, family, id] = location.pathname.split('/').map(decodeURIComponent);
  if (event.kind === 'board' || kind !== 'devices') return true;
  const key = `${family}/${id}`;
  return event.removed.includes(key) || event.devices.some((one) => one.key === key || parentKey(one) === key);
}

/** Clock and age of the last read, or why there is none. It is no live region: a clock that speaks helps nobody. */
function say(words: string, state: 'live' | 'lost', readMs?: number): void {
  const element = document.getElementById('live');
  if (element === null) return;
  element.textContent = words;
  element.dataset.state = state;
  if (readMs === undefined) return;
  const time = document.createElement('time');
  time.dataset.since = String(readMs);
  time.textContent = `${Math.max(0, Math.round((serverTime() - readMs) / 1_000))} s`;
  element.append(' · read ', time, ' ago');
}

/** Keys of the page of all devices: `/` filters, arrows or j and k move between devices, Escape leaves the filter, `?` shows them. */
function listenToKeys(): void {
  const keys = document.querySelector<HTMLDialogElement>('#keys');
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys?.open === true) return;
    const target = event.target as HTMLElement | null;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (event.key === 'Escape' && isTyping) return target.blur();
    if (isTyping) return;
    if (event.key === '?') return keys?.showModal();
    if (event.key === '/') {
      event.preventDefault();
      document.getElementById('filter')?.focus();
    }
    if (moveOnMap(event.key)) return event.preventDefault();
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
      if (part.contains(document.activeElement)) continue;
      const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
      if (next === null || next.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll('details')].map((one) => one.open);
      part.innerHTML = next.innerHTML;
      for (const [at, one] of part.querySelectorAll('details').entries()) one.open = open[at] ?? one.open;
    }
    const worst = fresh.querySelector('#worst .s')?.classList[2];
    if (worst !== undefined) showWorst(worst);
    enhance();
  }
}

// At the end: the classes above exist only when the module has come this far.
begin();
