/** State of the web configuration file. */
export interface WebConfigStats {
  /** False after a change of the file that could not be used. */
  readonly isSuccessful: boolean;
  /** When the file was last read and used. */
  readonly lastSuccessMs: number;
}
