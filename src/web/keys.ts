/** Keys of the page of all devices: `/` filters, arrows or j and k move between devices, Escape leaves the filter. */
export function listenToKeys(): void {
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
