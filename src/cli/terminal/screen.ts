import { writeSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Size } from './frame.ts';
import { type Key, KeyReader } from './keys.ts';

/** The alternate screen, no cursor, no wrapping of long lines. The saved cursor belongs to `?1049`. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?2026l\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l';

/** A lone Escape is a key after this time; the rest of a sequence comes sooner. */
const ESCAPE_MS = 50;

export interface Screen {
  size(): Size;
  write(text: string): void;
  onKey(react: (key: Key) => void): void;
  onResize(react: () => void): void;
  /** Called when the terminal is gone. */
  onGone(react: () => void): void;
  /** Gives the terminal back as it was. May be called several times. */
  close(): void;
}

/**
 * Takes the terminal: its alternate screen, and each key at once. However the process ends, except by SIGKILL, the terminal is given
 * back: `exit` also comes after an uncaught error.
 */
export function openScreen(input: ReadStream, output: WriteStream & { readonly fd: number }): Screen {
  const keys = new KeyReader();
  let isOpen = true;
  let waiting: NodeJS.Timeout | undefined;
  let keyed: (key: Key) => void = () => {};
  let gone: () => void = () => {};
  const said = holdErrors();
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    clearTimeout(waiting);
    process.off('exit', close);
    try {
      input.setRawMode(false);
      input.pause();
    } catch {
      // The terminal is gone, so there is nothing to give back.
    }
    writeNow(output.fd, LEAVE);
    said();
  };
  const lost = (): void => {
    gone();
  };
  process.on('exit', close);
  input.setRawMode(true);
  output.write(ENTER);
  input.setEncoding('utf8');
  input.on('data', (text: string) => {
    clearTimeout(waiting);
    for (const key of keys.read(text)) keyed(key);
    if (!keys.isWaiting) return;
    waiting = setTimeout(() => {
      for (const key of keys.end()) keyed(key);
    }, ESCAPE_MS);
  });
  for (const event of ['end', 'close', 'error']) input.on(event, lost);
  output.on('error', lost);
  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    write: (text) => {
      if (isOpen && text !== '') output.write(text);
    },
    onKey: (react) => {
      keyed = react;
    },
    onResize: (react) => {
      output.on('resize', react);
    },
    onGone: (react) => {
      gone = react;
    },
    close,
  };
}

/** Log lines that are kept while the screen is in use. */
const MOST_HELD = 100;

/** Keeps what is written to a standard error on the same terminal, because it would break the screen. The returned function writes it. */
function holdErrors(): () => void {
  const { stderr } = process;
  if (!stderr.isTTY) return () => {};
  const held: string[] = [];
  const write = stderr.write;
  stderr.write = ((text: string | Uint8Array, ...rest: readonly unknown[]) => {
    held.push(typeof text === 'string' ? text : Buffer.from(text).toString());
    if (held.length > MOST_HELD) held.shift();
    const done = rest.at(-1);
    if (typeof done === 'function') done();
    return true;
  }) as typeof stderr.write;
  return () => {
    stderr.write = write;
    if (held.length > 0) writeNow(stderr.fd, held.join(''));
  };
}

/** In an exit handler only a synchronous write still reaches the terminal. */
function writeNow(descriptor: number, text: string): void {
  try {
    writeSync(descriptor, text);
  } catch {
    // The terminal is gone.
  }
}
