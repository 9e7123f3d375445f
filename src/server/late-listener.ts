import { closeSync, openSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import type { Logger } from '../log/logger.ts';
import { sendFault, setCommonHeaders } from './answer.ts';

/** Files that are open at the same time while modules are loaded, and as many for whoever opens some meanwhile. */
const DESCRIPTORS = 16;

/**
 * Loads what answers with the first request that needs it. What does not load is told, and tried again with the next request. Of a module
 * that could not be read Node knows that for ever, so that none is asked for while there are not descriptors enough.
 */
export function lateListener(load: () => Promise<RequestListener>, logger: Logger): RequestListener {
  let loading: Promise<RequestListener> | undefined;
  const begin = async (): Promise<RequestListener> => {
    takeAndGiveBack(DESCRIPTORS);
    return load();
  };
  return async (request, response) => {
    loading ??= begin();
    let listener: RequestListener;
    try {
      listener = await loading;
    } catch (error) {
      loading = undefined;
      setCommonHeaders(response);
      return sendFault(request, response, logger, error);
    }
    return listener(request, response);
  };
}

/** Throws when there are not so many descriptors. */
function takeAndGiveBack(count: number): void {
  const taken: number[] = [];
  try {
    while (taken.length < count) taken.push(openSync('/', 'r'));
  } finally {
    for (const descriptor of taken) closeSync(descriptor);
  }
}
