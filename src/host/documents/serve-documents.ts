import { parentPort } from 'node:worker_threads';
import type { DocumentJob } from './document-thread.ts';
import { answerOf, type DocumentKind, type DocumentKinds } from './kind.ts';

/** Answers the jobs of a `DocumentThread`. An error of the program ends the thread. */
export function serveDocuments(kinds: DocumentKinds): void {
  parentPort?.on('message', async ({ kind, bytes, wanted }: DocumentJob) => {
    parentPort?.postMessage(await answerOf(kinds[kind] as DocumentKind<unknown>, Buffer.from(bytes).toString('utf8'), wanted));
  });
}
