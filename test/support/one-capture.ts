import type { Capture, CapturedRead } from '../../src/capture/format.ts';

/** A read in which nothing was found. */
export const EMPTY_READ: CapturedRead = { atMs: 0, wallMs: 0, tree: {}, kernelLog: [], commands: [], library: [], requests: [] };

/** A capture with these reads; the second one is like the first where it is absent. */
export function captureOf(first: Partial<CapturedRead>, second: Partial<CapturedRead> = first, about: Partial<Capture> = {}): Capture {
  return {
    ...{ format: 2, agentVersion: '1', node: 'n', isRedacted: false, options: {}, parts: {}, page: '' },
    ...about,
    reads: [
      { ...EMPTY_READ, ...first },
      { ...EMPTY_READ, ...second },
    ],
  };
}
