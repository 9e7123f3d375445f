import { serveDocuments } from '../host/documents/kind.ts';
import { documentKinds } from './document-kinds.ts';

serveDocuments(documentKinds);
