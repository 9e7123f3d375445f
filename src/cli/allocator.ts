import { requireKoffi } from '../host/koffi.ts';

/** Parameters of glibc's `mallopt`, by the variables that set them from outside (malloc.h, mallopt(3)). */
const PARAMETERS = [
  { variable: 'MALLOC_ARENA_MAX', parameter: -8, value: 1 },
  { variable: 'MALLOC_TRIM_THRESHOLD_', parameter: -1, value: 128 * 1024 },
];

/**
 * Has all threads share one arena of `malloc`, from which what is free goes back: some 5 MiB less where many threads are about to
 * start. The image has it from its variables; whoever sets them has his way. Without glibc or koffi nothing changes.
 */
export function boundAllocator(environment: Readonly<Record<string, string | undefined>>): void {
  const wanted = PARAMETERS.filter(({ variable }) => environment[variable] === undefined);
  if (wanted.length === 0 || environment.GLIBC_TUNABLES !== undefined) return;
  try {
    const mallopt = requireKoffi().load(null).func('int mallopt(int parameter, int value)');
    for (const { parameter, value } of wanted) mallopt(parameter, value);
  } catch {
    // It is a matter of a few MiB, and of these alone.
  }
}
