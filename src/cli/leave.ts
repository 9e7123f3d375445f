/**
 * Ends the process, whatever hangs. `process.exit` joins all threads first, and a thread inside a hung system call never
 * comes: then only the C library's `_exit` gets out with a status of our choice.
 */
export async function leave(status: number, isStuck: boolean): Promise<never> {
  if (isStuck) {
    const { default: koffi } = await import('koffi');
    koffi.load(null).func('void _exit(int status)')(status);
  }
  return process.exit(status);
}
