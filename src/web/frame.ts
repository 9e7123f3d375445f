/** What HTML cannot do by itself: copy a command, one tab stop for the map, the devices of one pod, the icon of the tab. */

/** Adds a button to each command that has none. The command is marked where the clipboard is not allowed. */
export function enhance(): void {
  for (const box of document.querySelectorAll('.cmd')) {
    if (box.querySelector('button') !== null) continue;
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
    button.addEventListener('click', () => void copy(box, button));
    box.append(button);
  }
  const tiles = tilesOf();
  if (tiles.every(({ tabIndex }) => tabIndex < 0) && tiles[0] !== undefined) tiles[0].tabIndex = 0;
}

async function copy(box: Element, button: HTMLButtonElement): Promise<void> {
  const code = box.querySelector('code');
  if (code === null) return;
  try {
    await navigator.clipboard.writeText(code.textContent ?? '');
    button.textContent = 'Copied';
  } catch {
    window.getSelection()?.selectAllChildren(code);
    button.textContent = 'Marked';
  }
  window.setTimeout(() => {
    button.textContent = 'Copy';
  }, 2_000);
}

const tilesOf = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('.tile > a')];
const TILE_STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 4, ArrowUp: -4 };

/** Moves the focus on the map. Returns false where it is not on the map. */
export function moveOnMap(key: string): boolean {
  const tiles = tilesOf();
  const at = tiles.indexOf(document.activeElement as HTMLElement);
  const next = tiles[at + (TILE_STEPS[key] ?? Number.NaN)];
  if (at < 0 || next === undefined) return at >= 0 && key in TILE_STEPS;
  (tiles[at] as HTMLElement).tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  return true;
}

/** Outlines all devices of the pod that the pointer or the focus is on. */
export function outlinePods(): void {
  for (const kind of ['mouseover', 'focusin'] as const)
    document.addEventListener(kind, ({ target }) => {
      const pod = target instanceof Element ? target.closest<HTMLElement>('#map [data-pod]')?.dataset.pod : undefined;
      for (const one of document.querySelectorAll<HTMLElement>('#map [data-pod]')) one.classList.toggle('same', one.dataset.pod === pod);
    });
}

const ICONS: Readonly<Record<string, string>> = { pending: 'degraded', missing: 'unhealthy', recovering: 'healthy' };

/** Shows the worst state of the node in the head of the page and as the icon of the tab. */
export function showWorst(state: string): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
  const address = icon?.dataset[ICONS[state] ?? state];
  if (icon !== null && address !== undefined && icon.getAttribute('href') !== address) icon.setAttribute('href', address);
  const mark = document.querySelector('#worst .s');
  if (mark !== null) mark.className = `s bare ${state}`;
}
