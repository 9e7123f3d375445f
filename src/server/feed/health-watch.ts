import { type Request, type RequestHandler, type Response, Router } from 'express';
import { takes } from '../api/parameters.ts';
import { sendError } from '../http/answer.ts';
import { limitStreams } from '../http/limit-answers.ts';
import type { FeedDevice, FeedList } from './feed-list.ts';
import type { HealthFeed } from './health-feed.ts';

const MOST_STREAMS = 16;

export interface HealthWatch {
  readonly router: Router;
  /** Ends all streams: the server closes. */
  end(): void;
}

/** `GET /api/health/watch`: the feed as JSON lines. */
export function createHealthWatch(feed: HealthFeed): HealthWatch {
  const open = new Set<Response>();
  const onlyWhenReady: RequestHandler = (request, response, next) =>
    feed.isReady ? next() : sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
  const handler: RequestHandler = (request, response) => {
    response.setHeader('Content-Type', 'application/x-ndjson; charset=utf-8');
    if (request.method === 'HEAD') return void response.end();
    open.add(response);
    const stop = follow(feed, request, response);
    response.once('close', () => {
      open.delete(response);
      stop();
    });
  };
  const router = Router();
  router.get('/api/health/watch', takes(), onlyWhenReady, limitStreams(MOST_STREAMS), handler);
  return {
    router,
    end() {
      for (const response of open) response.end();
    },
  };
}

function follow(feed: HealthFeed, { socket }: Request, response: Response): () => void {
  return feed.follow({
    write: (list, isNews, done) => {
      const line = isNews ? listLine(list) : { heartbeat: new Date().toISOString() };
      response.write(`${JSON.stringify(line)}\n`, (error) => (error ? undefined : done()));
    },
    cut: () => socket.destroy(),
  });
}

const listLine = ({ devices, families, takenAtMs }: FeedList): object => ({
  takenAt: new Date(takenAtMs).toISOString(),
  families,
  devices: devices.map(deviceView),
});

function deviceView({ state, health, message, names }: FeedDevice): object {
  const { family, id, pciAddress, uuid } = state.device;
  return { family, id, pciAddress, uuid, state: health, message, names };
}
