/** Where a command's data goes. */
export interface Output {
  /** Resolves once the text has left this process, or nobody reads it any more. */
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
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error;
    if (closed) return;
    closed = true;
    for (const react of reactions) react();
  });
  return {
    write: (text) =>
      new Promise((resolve) => {
        if (closed || text === '') resolve();
        else stream.write(text, () => resolve());
      }),
    isClosed: () => closed,
    onClosed: (react) => {
      reactions.push(react);
    },
  };
}
