import type { Clock } from '../host/clock.ts';
import { DocumentThread } from '../host/documents/document-thread.ts';
import { moduleBeside } from '../host/job-thread.ts';
import { checkpointKind } from './checkpoint/checkpoint.ts';
import { cdiKind } from './claims/cdi-reader.ts';
import { metadataKind } from './claims/metadata-reader.ts';

/** The documents on the node that say which container got which device from the kubelet or a driver. */
export const documentKinds = { checkpoint: checkpointKind, cdi: cdiKind, metadata: metadataKind } as const;

/** The thread that parses them. */
export function documentThread(clock: Clock): DocumentThread {
  return new DocumentThread(moduleBeside(import.meta.url, 'document-worker'), documentKinds, clock);
}
