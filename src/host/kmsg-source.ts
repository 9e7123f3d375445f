/** How far one pass over a log came. */
export type SourceEnd =
  /** Nothing more for now. */
  | { readonly state: 'drained' }
  /** The budget is used up and there is more. */
  | { readonly state: 'more' }
  /** The source is of no further use; the errno name says why. `ESTALE`: another file took its place. */
  | { readonly state: 'failed'; readonly error: string };

/** An open log. Reads never block. */
export interface KmsgSource {
  /** Opened anew it begins at its oldest record again, and sequence numbers tell what was read before. */
  readonly isDevice: boolean;
  /** Gives each record with its continuation lines. */
  read(onRecord: (record: string) => void): SourceEnd;
  close(): void;
}
