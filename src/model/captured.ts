/** What a replay of a captured machine offers the probe of a family in place of the machine. */
export interface CapturedSources {
  /** Options of the family on the captured machine; those that had their default may be absent. */
  readonly options: Readonly<Record<string, string>>;
  /** Whether a library of the vendor answered on the captured machine. */
  readonly hasAnswers: boolean;
  /** File with its recorded answers, which changes while the replay goes on. Without answers it does not exist. */
  readonly answersFile: string;
}
