/** Loads a page again and takes the parts that changed. */
const SPACING_MS = 2_000;

export class ReloadedPage {
  #isLoading = false;
  #isWaiting = false;
  #loadedAtMs = 0;
  readonly #onParts: () => void;

  /** `onParts` is called when parts of the page were replaced. */
  constructor(onParts: () => void) {
    this.#onParts = onParts;
  }

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
    this.#onParts();
  }
}
