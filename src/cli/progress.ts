/** A user who sees nothing for longer than this thinks that the command hangs. */
const QUIET_MS = 2_000;
const STEP_MS = 1_000;

/** Where progress is shown: the standard error of the process, so that the data on stdout stays as it is. */
type ProgressStream = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>;

/** Says on a terminal what a command waits for, once it took two seconds, and takes the line away at the end. */
export async function withProgress<T>(what: string, work: Promise<T>, stream: ProgressStream = process.stderr): Promise<T> {
  if (!stream.isTTY) return await work;
  const begun = performance.now();
  let isShown = false;
  const show = (): void => {
    isShown = true;
    stream.write(`\r\u001b[K${what} … ${Math.round((performance.now() - begun) / 1_000)} s`);
  };
  let timer = setTimeout(function again() {
    show();
    timer = setTimeout(again, STEP_MS);
  }, QUIET_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    if (isShown) stream.write('\r\u001b[K');
  }
}
