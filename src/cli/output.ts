import { UserError } from '../errors.ts';
import { visible, visibleLines } from '../model/one-line.ts';

const HOME = '\u001b[H';
const CLEAR_BELOW = '\u001b[J';
const CLEAR_REST = '\u001b[K';

/**
 * Output of a command. All commands print through it, because names, labels and lines of others must not control the terminal: such
 * characters are written as escapes, which are valid in JSON.
 */
export interface Output {
  /** Resolves when the text was written or the reader closed the output. Fails with a user error for other errors, such as a full disk. */
  write(text: string): Promise<void>;
  /** Writes metrics. Their format has no such escapes: only a terminal gets them, and a file or a pipe gets the bytes as they are. */
  writePage(page: string): Promise<void>;
  /** Writes lines over those of the terminal, from its first line on. */
  overwrite(lines: readonly string[]): Promise<void>;
  /** True after the reader closed the output (`| head`); further output is then useless. */
  isClosed(): boolean;
  /** Calls `react` when the reader closes the output. */
  onClosed(react: () => void): void;
}

/** Wraps a stream, so that a reader that closes the output does not cause an error. */
export function createOutput(stream: NodeJS.WritableStream & { readonly isTTY?: boolean }): Output {
  let closed = false;
  const reactions: (() => void)[] = [];
  // `write` reports the error of a single write to its caller.
  stream.on('error', () => {
    if (closed) return;
    closed = true;
    for (const react of reactions) react();
  });
  const send = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const done = (error?: Error | null): void => {
        if (error === undefined || error === null || hasNoReader(error)) resolve();
        else reject(new UserError('output-failed', { problem: error.message }, error));
      };
      if (closed || text === '') resolve();
      else stream.write(text, done);
    });
  return {
    write: (text) => send(visibleLines(text)),
    writePage: (page) => send(stream.isTTY === true ? visibleLines(page) : page),
    overwrite: (lines) => send(`${HOME}${lines.map((line) => `${visible(line)}${CLEAR_REST}\n`).join('')}${CLEAR_BELOW}`),
    isClosed: () => closed,
    onClosed: (react) => {
      reactions.push(react);
    },
  };
}

const hasNoReader = (error: NodeJS.ErrnoException): boolean => ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(error.code ?? '');
