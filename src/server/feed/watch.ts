import { type RequestHandler, type Response, Router } from 'express';
import { sendError, takes } from '../http/answer.ts';
import { limitStreams } from '../http/limit-answers.ts';
import type { BoardFeed } from './board-feed.ts';
import type { Sink } from './broadcast.ts';
import type { FeedDevice } from './feed-list.ts';
import type { FeedMessage, HealthFeed } from './health-feed.ts';

export const MOST_BOARD_STREAMS = 64;
const MOST_HEALTH_STREAMS = 16;

/** A path whose answer does not end. */
export interface Watch {
  readonly router: Router;
  /** Ends all streams: the server closes. */
  end(): void;
}

interface WatchSettings<M> {
  readonly path: string;
  readonly type: string;
  readonly most: number;
  isReady(): boolean;
  textOf(message: M): Buffer | string;
}

/** `GET /api/v1/devices/watch`: the board as server-sent events. */
export const createBoardWatch = (feed: BoardFeed, isReady: () => boolean): Watch =>
  createWatch(feed, {
    ...{ path: '/api/v1/devices/watch', type: 'text/event-stream', most: MOST_BOARD_STREAMS },
    isReady,
    textOf: (bytes) => bytes,
  });

/** `GET /api/health/watch`: the health feed as JSON lines. */
export const createHealthWatch = (feed: HealthFeed): Watch =>
  createWatch(feed, {
    ...{ path: '/api/health/watch', type: 'application/x-ndjson', most: MOST_HEALTH_STREAMS },
    isReady: () => feed.isReady,
    textOf: (message) => `${JSON.stringify(healthLine(message))}\n`,
  });

function createWatch<M>(feed: { follow(sink: Sink<M>): () => void }, { path, type, most, isReady, textOf }: WatchSettings<M>): Watch {
  const open = new Set<Response>();
  const onlyWhenReady: RequestHandler = (request, response, next) =>
    isReady() ? next() : sendError(request, response, 503, 'not-ready', 'The first snapshot is not ready yet.');
  const handler: RequestHandler = (request, response) => {
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    if (request.method === 'HEAD') return void response.end();
    open.add(response);
    const { socket } = request;
    const stop = feed.follow({
      write: (message, done) => void response.write(textOf(message), (error) => (error ? undefined : done())),
      cut: () => socket.destroy(),
    });
    response.once('close', () => {
      open.delete(response);
      stop();
    });
  };
  const router = Router();
  router.get(path, takes(), onlyWhenReady, limitStreams(most), handler);
  return {
    router,
    end() {
      for (const response of open) response.end();
    },
  };
}

function healthLine({ list: { devices, families, takenAtMs }, isNews }: FeedMessage): object {
  if (!isNews) return { heartbeat: new Date().toISOString() };
  return { takenAt: new Date(takenAtMs).toISOString(), families, devices: devices.map(deviceLine) };
}

function deviceLine({ state, health, message, names }: FeedDevice): object {
  const { family, id, pciAddress, uuid } = state.device;
  return { family, id, pciAddress, uuid, state: health, message, names };
}
