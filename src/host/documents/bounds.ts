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
