import { UserError } from '../errors.ts';

/** Where a command's data goes. */
export interface Output {
  /** Resolves once the text has left this process, or nobody reads it any more; fails with a user error where there is no room for it. */
  write(text: string): Promise<void>;
  /** True once the reader went away (`| head`): then there is no use in going on. */
  isClosed(): boolean;
  /** Calls back when the reader goes away. */
  onClosed(react: () => void): void;
}

/** Wraps a stream so that a reader that goes away ends the output quietly instead of raising an error. */
export function createOutput(stream: NodeJS.WritableStream): Output {
  let closed = false;
  const reactions: (() => void)[] = [];
  // What a write came to is told to the one who wrote.
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
