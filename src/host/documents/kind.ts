import { parentPort } from 'node:worker_threads';
import type { DocumentReason } from '../../model/pod-resources.ts';

/** What a parser made of a document. */
export interface Parsed<T> {
  readonly value: T;
  /** False while the file is being written, or when it is no document of this kind. */
  readonly isComplete: boolean;
}

/** A kind of documents of other programs. */
export interface DocumentKind<T> {
  readonly bounds: Bounds;
  /** Size up to which text in braces is parsed without a thread, where a parser takes longer than the one of JSON. */
  readonly smallBytes?: number;
  /** Parses within the bounds, and leaves out what is not wanted. May throw `TooComplex`. */
  parse(text: string, wanted: ReadonlySet<string>): Parsed<T> | Promise<Parsed<T>>;
}

export type DocumentKinds = Readonly<Record<string, DocumentKind<unknown>>>;

export interface DocumentProblem<Code extends string = DocumentReason> {
  readonly code: Code;
  /** The path and the reason. */
  readonly message: string;
}

export type Answer<T> = Parsed<T> | { readonly code: DocumentReason; readonly reason: string };

/** Parses one document. Rejects only by an error of the program. */
export async function answerOf<T>(kind: DocumentKind<T>, text: string, wanted: readonly string[]): Promise<Answer<T>> {
  try {
    return await kind.parse(text, new Set(wanted));
  } catch (error) {
    if (error instanceof TooComplex) return { code: 'too-complex', reason: error.message };
    throw error;
  }
}

/** Limits of one document. They hold before a parser sees it, so that no content can cost more time or memory than its size explains. */
export interface Bounds {
  readonly mostBytes: number;
  /** Values and pairs of all lists and mappings together. */
  readonly mostEntries: number;
  /** Lists and mappings within each other. */
  readonly mostDepth: number;
}

/** A document past a bound other than its size. */
export class TooComplex extends Error {}

export const tooManyEntries = ({ mostEntries }: Bounds): TooComplex => new TooComplex(`it has more than ${mostEntries} entries`);
export const tooDeep = ({ mostDepth }: Bounds): TooComplex => new TooComplex(`it is nested more than ${mostDepth} levels deep`);

/** Answers the jobs of a `DocumentThread`. An error of the program ends the thread. */
export function serveDocuments(kinds: DocumentKinds): void {
  parentPort?.on('message', async ({ kind, bytes, wanted }: DocumentJob) => {
    parentPort?.postMessage(await answerOf(kinds[kind] as DocumentKind<unknown>, Buffer.from(bytes).toString('utf8'), wanted));
  });
}

/** A document that the thread shall parse. */
export interface DocumentJob {
  readonly kind: string;
  readonly bytes: Uint8Array;
  readonly wanted: readonly string[];
}
