import type { DocumentReason } from '../../model/pod-resources.ts';
import { type Bounds, TooComplex } from './bounds.ts';

/** What a parser made of a document. */
export interface Parsed<T> {
  readonly value: T;
  /** False while the file is being written, or when it is no document of this kind. */
  readonly isComplete: boolean;
}

/** A kind of documents of other programs. */
export interface DocumentKind<T> {
  readonly bounds: Bounds;
  /** Parses within the bounds, and leaves out what is not wanted. May throw `TooComplex`. */
  parse(text: string, wanted: ReadonlySet<string>): Parsed<T> | Promise<Parsed<T>>;
}

export type DocumentKinds = Readonly<Record<string, DocumentKind<unknown>>>;

export interface DocumentProblem {
  readonly code: DocumentReason;
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
