import { type RequestHandler, type Response, Router } from 'express';
import { takes } from '../api/parameters.ts';
import { sendError } from '../http/answer.ts';
import type { BoardFeed } from './board-feed.ts';

/** Streams do not end, so they have places of their own: those of scrapes stay free. */
export const MOST_BOARD_STREAMS = 64;

export interface BoardWatch {
  readonly router: Router;
  /** Ends all streams: the server closes, or the passwords changed. */
  end(): void;
}

/** `GET /api/board/watch`: the board as server-sent events. */
export function createBoardWatch(feed: BoardFeed, isReady: () => boolean): BoardWatch {
  const open = new Set<Response>();
  const router = Router();
  const handler: RequestHandler = (request, response) => {
    if (!isReady()) return sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
    if (open.size >= MOST_BOARD_STREAMS) {
      response.setHeader('Retry-After', '10');
      return sendError(request, response, 503, 'too-many-streams', `There are ${MOST_BOARD_STREAMS} streams already. Close one of them.`);
    }
    response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
    if (request.method === 'HEAD') return response.end();
    open.add(response);
    const { socket } = request;
    const stop = feed.follow({
      write: (bytes, done) => void response.write(bytes, (error) => (error ? undefined : done())),
      cut: () => socket.destroy(),
    });
    response.once('close', () => {
      open.delete(response);
      stop();
    });
  };
  router.get('/api/board/watch', takes(), handler);
  return {
    router,
    end() {
      for (const response of open) response.end();
    },
  };
}
