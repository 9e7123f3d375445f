import { type RequestHandler, type Response, Router } from 'express';
import { takes } from '../api/parameters.ts';
import { sendError } from '../http/answer.ts';
import { limitStreams } from '../http/limit-answers.ts';
import type { BoardFeed } from './board-feed.ts';

export const MOST_BOARD_STREAMS = 64;

export interface BoardWatch {
  readonly router: Router;
  /** Ends all streams: the server closes. */
  end(): void;
}

/** `GET /api/v1/devices/watch`: the board as server-sent events. */
export function createBoardWatch(feed: BoardFeed, isReady: () => boolean): BoardWatch {
  const open = new Set<Response>();
  const onlyWhenReady: RequestHandler = (request, response, next) =>
    isReady() ? next() : sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
  const handler: RequestHandler = (request, response) => {
    response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
    if (request.method === 'HEAD') return void response.end();
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
  const router = Router();
  router.get('/api/v1/devices/watch', takes(), onlyWhenReady, limitStreams(MOST_BOARD_STREAMS), handler);
  return {
    router,
    end() {
      for (const response of open) response.end();
    },
  };
}
