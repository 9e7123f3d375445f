import type { Collection } from '../../src/model/collection.ts';
import type { Collect, ReaderListener, StartReader } from '../../src/supervisor/messages.ts';
import { CollectionSender } from '../../src/supervisor/posted-collection.ts';

/** Answers one request with a collection. */
export type Answer = (collection: Collection, durationMs?: number) => void;

/** Readers that live in this process. `collect`: what they do with a request; a family that is left calls `left`. */
export function scriptedReaders(
  collect: (request: Collect, answer: Answer, listener: ReaderListener) => void,
  left: (family: string) => void = () => {},
): StartReader {
  return (listener) => {
    const senders = new Map<string, CollectionSender>();
    let isEnding = false;
    const end = (): void => {
      if (isEnding) return;
      isEnding = true;
      for (const family of senders.keys()) left(family);
      queueMicrotask(() => listener.ended({ how: 'SIGKILL', isFromOutside: true }));
    };
    return {
      pid: 1,
      get hasExited() {
        return isEnding;
      },
      position: () => ({ writes: 1, step: undefined }),
      isAsleep: () => false,
      hear: (then) => then(),
      end,
      kill: end,
      send: (request) => {
        if (request.run === undefined) {
          senders.delete(request.family);
          return left(request.family);
        }
        if (request.start !== undefined) senders.set(request.family, new CollectionSender());
        const sender = senders.get(request.family) as CollectionSender;
        const { run } = request;
        collect(
          request,
          (collection, durationMs = 1) => listener.received({ kind: 'collected', run, collection: sender.encode(collection), durationMs }),
          listener,
        );
      },
    };
  };
}
