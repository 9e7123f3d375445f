import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Logger } from '../log/logger.ts';
import { isReading, requestPath, sendFault, setCommonHeaders } from './answer.ts';
import type { Bound } from './bound.ts';
import type { ScrapeHandler } from './scrape.ts';

export interface ScrapeFront {
  /** Compared as it is: in a configured path no character has a meaning of its own. */
  readonly path: string;
  readonly scrapes: ScrapeHandler;
  readonly bound: Bound;
  readonly logger: Logger;
}

/** Answers scrapes itself and leaves everything else to the listener behind it. */
export function scrapesBefore(others: RequestListener, { path, scrapes, bound, logger }: ScrapeFront): RequestListener {
  const scrape = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    scrapes.arrived();
    setCommonHeaders(response);
    if (!(await bound(request, response))) return;
    try {
      await scrapes.answer(request, response);
    } catch (error) {
      if (response.headersSent) request.socket.destroy();
      else await sendFault(request, response, logger, error);
    }
  };
  return (request, response) => {
    if (isReading(request) && requestPath(request) === path) void scrape(request, response);
    else others(request, response);
  };
}
