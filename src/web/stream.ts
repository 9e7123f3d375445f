import type { Board } from '../board/board.ts';
import type { DeviceView } from '../board/device-view.ts';

export type BoardEvent =
  | { readonly kind: 'board'; readonly board: Board }
  | {
      readonly kind: 'change';
      readonly head: Omit<Board, 'devices'>;
      readonly devices: readonly DeviceView[];
      readonly removed: readonly string[];
    };

export interface StreamListener {
  took(event: BoardEvent): void;
  /** The connection ended; the next try is after the delay. */
  lost(delayMs: number): void;
}

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;

/**
 * Follows the board. A lost connection is tried again after a delay that doubles. A hidden page has no connection, because a browser opens
 * six of them to one server at most, and further pages would wait.
 */
export function followBoard(address: string, listener: StreamListener): void {
  let source: EventSource | undefined;
  let timer: number | undefined;
  let delayMs = FIRST_DELAY_MS;

  const close = (): void => {
    source?.close();
    source = undefined;
    if (timer !== undefined) window.clearTimeout(timer);
    timer = undefined;
  };
  const open = (): void => {
    close();
    const opened = new EventSource(address);
    source = opened;
    opened.addEventListener('board', ({ data }) => {
      delayMs = FIRST_DELAY_MS;
      listener.took({ kind: 'board', board: JSON.parse(data) as Board });
    });
    opened.addEventListener('change', ({ data }) => {
      const { devices, removed, ...head } = JSON.parse(data) as Board & { readonly removed: readonly string[] };
      listener.took({ kind: 'change', head, devices, removed });
    });
    opened.addEventListener('error', () => {
      close();
      // All pages lose an agent at the same time. They must not come back at the same time.
      const waitMs = delayMs * (0.75 + Math.random() / 2);
      delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 2);
      timer = window.setTimeout(open, waitMs);
      listener.lost(waitMs);
    });
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close();
    else if (source === undefined) open();
  });
  // A page that the browser keeps for its back button must not hold a connection.
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted && source === undefined) open();
  });
  if (!document.hidden) open();
}
