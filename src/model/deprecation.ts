/** Marks an option or a metric that is to go. It works as before until then. */
export interface Deprecation {
  /** Minor version that marked it: `0.2`. */
  readonly since: string;
  /** What to use instead. */
  readonly use: string;
}

/** The help text, and what to use instead when it is to go. */
export function fullHelp({ help, deprecated }: { readonly help: string; readonly deprecated?: Deprecation | undefined }): string {
  return deprecated === undefined ? help : `${help} (Deprecated since ${deprecated.since}: use ${deprecated.use}.)`;
}
