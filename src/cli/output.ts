import { UserError } from '../errors.ts';

/** Output of a command. */
export interface Output {
  /** Resolves when the text was written or the reader closed the output. Fails with a user error for other errors, such as a full disk. */
  write(text: string): Promise<void>;
  /** True after the reader closed the output (`| head`); further output is then useless. */
  isClosed(): boolean;
  /** Calls `react` when the reader closes the output. */
  onClosed(react: () => void): void;
}

/** Wraps a stream, so that a reader that closes the output does not cause an error. */
export function createOutput(stream: NodeJS.WritableStream): Output {
  let closed = false;
  const reactions: (() => void)[] = [];
  // `write` reports the error of a single write to its caller.
  stream.on('error', () => {
    if (closed) return;
    closed = true;
    for (const react of reactions) react();
  });
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        const done = (error?: Error | null): void => {
          if (error === undefined || error === null || hasNoReader(error)) resolve();
          else reject(new UserError('output-failed', { problem: error.message }, error));
        };
        if (closed || text === '') resolve();
        else stream.write(text, done);
      }),
    isClosed: () => closed,
    onClosed: (react) => {
      reactions.push(react);
    },
  };
}

const hasNoReader = (error: NodeJS.ErrnoException): boolean => ['EPIPE', 'ERR_STREAM_DESTROYED'].includes(error.code ?? '');
