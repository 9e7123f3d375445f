import { systemClock } from '../../src/host/clock.ts';
import { DocumentThread } from '../../src/host/documents/document-thread.ts';
import { documentKinds } from '../../src/kubelet/document-kinds.ts';

/** The built thread, because this Node runs no sources. */
export const builtDocumentThread = (): DocumentThread =>
  new DocumentThread(new URL('../../dist/kubelet/document-worker.js', import.meta.url), documentKinds, systemClock);
