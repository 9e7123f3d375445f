/**
 * Ends the process even when a thread hangs. `process.exit` first joins all threads, and a thread in a hung system call never ends.
 * In that case only the C library's `_exit` can end the process with a chosen status.
 */
export async function leave(status: number, isStuck: boolean): Promise<never> {
  if (isStuck) {
    const { default: koffi } = await import('koffi');
    koffi.load(null).func('void _exit(int status)')(status);
  }
  return process.exit(status);
}
