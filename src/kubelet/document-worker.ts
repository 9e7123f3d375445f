import { serveDocuments } from '../host/documents/serve-documents.ts';
import { documentKinds } from './document-kinds.ts';

serveDocuments(documentKinds);
