import { durationText } from '../model/duration.ts';

/** Difference of the clocks of server and browser, so that ages hold where a clock is wrong. */
let offsetMs = 0;

export function useServerTime(nowMs: number): void {
  offsetMs = nowMs - Date.now();
}

/** Present time by the clock of the server. */
export const serverTime = (): number => Date.now() + offsetMs;

/** Keeps all ages on the page up to date. */
export function keepAges(): void {
  window.setInterval(() => {
    if (document.hidden) return;
    const nowMs = serverTime();
    for (const element of document.querySelectorAll<HTMLElement>('[data-since]')) {
      const words = durationText(Math.floor((nowMs - Number(element.dataset.since)) / 1_000) * 1_000);
      if (element.textContent !== words) element.textContent = words;
    }
  }, 1_000);
}

/** Announces a text to a screen reader, without interrupting what it reads. */
export function announce(words: string): void {
  const element = document.getElementById('announcement');
  if (element !== null) element.textContent = words;
}
