/** Whether the work of one container moves on, judged over all its devices. Plain data. Times are wall clock in milliseconds. */
export interface ContainerWaiting {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Keys of its devices that can wait, `family/id`. */
  readonly devices: readonly string[];
  /** `stalled`: it waits after a time in which its steps were seen. `unknown`: something that the answer needs was not read. */
  readonly state: 'not-waiting' | 'waiting' | 'stalled' | 'unknown';
  /** Since when nothing moves; present while it waits. */
  readonly sinceMs?: number;
  /** When a reading last showed work; absent before the first. */
  readonly lastProgressMs?: number;
  /** Period of its steps; absent while none was seen. */
  readonly stepSeconds?: number;
  /** Why the state is unknown, in words; absent otherwise. */
  readonly unknown?: string;
}
