import type { RequestListener } from 'node:http';
import type { Logger } from '../log/logger.ts';
import { sendFault, setCommonHeaders } from './answer.ts';

/** Loads what answers with the first request that needs it. What does not load is told, and tried again with the next request. */
export function lateListener(load: () => Promise<RequestListener>, logger: Logger): RequestListener {
  let loading: Promise<RequestListener> | undefined;
  return async (request, response) => {
    loading ??= load();
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
