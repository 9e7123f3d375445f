/** Marks a deprecated metric. It works as before until it is removed. */
export interface Deprecation {
  /** Minor version that marked it: `0.2`. */
  readonly since: string;
  /** What to use instead. */
  readonly use: string;
}

/** The help text, and what to use instead of something deprecated. */
export function fullHelp({ help, deprecated }: { readonly help: string; readonly deprecated?: Deprecation | undefined }): string {
  return deprecated === undefined ? help : `${help} (Deprecated since ${deprecated.since}: use ${deprecated.use}.)`;
}
