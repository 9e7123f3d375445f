import { type Request, type RequestHandler, type Response, Router } from 'express';
import { sendError } from '../http/answer.ts';
import type { FeedDevice, FeedList } from './feed-list.ts';
import type { HealthFeed } from './health-feed.ts';

/** Streams do not end, so they have places of their own: those of scrapes stay free. */
const MOST_STREAMS = 16;

export interface HealthWatch {
  readonly router: Router;
  /** Ends all streams: the server closes, or the passwords changed. */
  end(): void;
}

/** `GET /api/health/watch`: the feed as JSON lines. */
export function createHealthWatch(feed: HealthFeed): HealthWatch {
  const open = new Set<Response>();
  const router = Router();
  const handler: RequestHandler = (request, response) => {
    if (Object.keys(request.query).length > 0)
      return sendError(request, response, 400, 'parameter-unknown', 'This path has no parameters.');
    if (!feed.isReady) return sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
    if (open.size >= MOST_STREAMS) {
      response.setHeader('Retry-After', '10');
      return sendError(request, response, 503, 'too-many-streams', `There are ${MOST_STREAMS} streams already. Close one of them.`);
    }
    response.setHeader('Content-Type', 'application/x-ndjson; charset=utf-8');
    if (request.method === 'HEAD') return response.end();
    open.add(response);
    const stop = follow(feed, request, response);
    response.once('close', () => {
      open.delete(response);
      stop();
    });
  };
  router.get('/api/health/watch', handler);
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

const listLine = ({ devices, takenAtMs }: FeedList): object => ({
  takenAt: new Date(takenAtMs).toISOString(),
  devices: devices.map(deviceView),
});

function deviceView({ state, health, message, names }: FeedDevice): object {
  const { family, id, pciAddress, uuid } = state.device;
  return { family, id, pciAddress, uuid, state: health, message, names };
}
