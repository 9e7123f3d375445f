import type { RequestHandler } from 'express';

/** How long requests wait at most for connections that are being accepted. */
const ACCEPT_MS = 20;

/**
 * Lets one request through in each turn of the event loop. A page of many devices takes tens of milliseconds, and the loop reads all connections
 * before it reads one again: without turns, a probe of the kubelet would wait for the pages of all other clients. Node accepts only one connection
 * in each turn, so requests also wait while many connections arrive, because a probe can be the last of them.
 */
export function takeTurns(acceptedMs: () => number): RequestHandler {
  const waiting: (() => void)[] = [];
  let [seenMs, answeredMs] = [acceptedMs(), performance.now()];
  const turn = (): void => {
    const isArriving = acceptedMs() !== seenMs && performance.now() - answeredMs < ACCEPT_MS;
    seenMs = acceptedMs();
    const next = isArriving ? undefined : waiting.shift();
    if (waiting.length > 0) setImmediate(turn);
    next?.();
    if (next !== undefined) answeredMs = performance.now();
  };
  return ({ socket }, _response, next) => {
    if (waiting.push(() => void (socket.destroyed || next())) === 1) setImmediate(turn);
  };
}
