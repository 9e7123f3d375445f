/** The part of `/proc/<pid>/stat` that identifies a process and shows whether it runs. */
export interface ProcessStat {
  /** Name that the process has now, as in `/proc/<pid>/comm`. The process chooses it, so it may contain any character. */
  readonly name: string;
  /** One letter: `R` runs, `S` sleeps, `D` waits in the kernel and cannot be killed. */
  readonly state: string;
  /** Ticks since boot. With the PID they distinguish a process from a later one with the same PID. */
  readonly startTicks: string;
}

/** Number of the fields from the state to the start time, both included: fields 3 and 22 of proc_pid_stat(5). */
const FIELDS = 20;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\\\': '\\' };

/** Parses the text of `/proc/<pid>/stat`; undefined when it has another form. The name ends at the last bracket, because it may contain one. */
export function parseProcessStat(text: string): ProcessStat | undefined {
  const [opening, closing] = [text.indexOf('('), text.lastIndexOf(')')];
  if (opening < 0 || closing < opening) return undefined;
  const fields = text
    .slice(closing + 1)
    .trim()
    .split(' ');
  const [state, startTicks] = [fields[0], fields[FIELDS - 1]];
  if (state === undefined || !/^[A-Za-z]$/.test(state) || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined;
  // The kernel writes a line feed and a backslash of a name as two characters.
  const name = text.slice(opening + 1, closing).replace(/\\[n\\]/g, (pair) => ESCAPES[pair] ?? pair);
  return { name, state, startTicks };
}
