import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';

/** A comparison that the thread shall make. */
export interface Comparison {
  readonly id: number;
  readonly password: string;
  readonly hash: string;
}

/** Its result. */
export interface Compared {
  readonly id: number;
  readonly isRight: boolean;
}

parentPort?.on('message', ({ id, password, hash }: Comparison) => {
  const answer: Compared = { id, isRight: compareSync(password, hash) };
  parentPort?.postMessage(answer);
});
