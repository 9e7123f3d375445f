import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import { MOST_FAULT_LINES } from '../../model/fault.ts';
import type { XidLine } from './xid-line.ts';

/** Number, times and text of a record. An Xid event of the library has a number below 0. */
export interface RecordPlace extends Pick<KmsgMessage, 'seq' | 'timeUsec' | 'text'> {
  /** Time on a clock that a change of the wall clock does not affect. It orders lines and reads. Absent when unknown. */
  readonly timeMs?: number;
  /** Wall clock time. Absent when it is equal to `timeMs`. */
  readonly wallMs?: number;
}

/**
 * The lines of one fault. The driver tells most faults in one line. A graphics exception (Xid 13) takes several: what went wrong, registers,
 * and mostly at the end the process. The removal of channels (Xid 45) takes one line for each channel of a process.
 */
export interface XidGroup {
  /** Place of the first line. */
  readonly first: RecordPlace;
  /** Place of the latest line. */
  readonly last: RecordPlace;
  /** The line that tells the cause, with the process of the line that names one. */
  readonly line: XidLine;
  /** Texts of the distinct lines, the leading one first. */
  readonly texts: readonly string[];
  /** No further line belongs to it. */
  readonly isWhole: boolean;
}

const GRAPHICS_EXCEPTION = 13;
const CHANNEL_STOPPED = 43;
const CHANNELS_REMOVED = 45;

/** Longest time between two lines of one fault: the driver writes them in about 1.5 ms each, and a serial console takes 10 ms for one. */
const LONGEST_GAP_MS: Readonly<Record<number, number>> = { [GRAPHICS_EXCEPTION]: 250, [CHANNELS_REMOVED]: 1_000 };
/** The last line of a graphics exception. */
const IS_LAST = /^Graphics Exception: (?:channel|ChID)\b/i;
const IS_REGISTERS = /^Graphics Exception: ESR\b/i;

/** Returns the fault with one more line; undefined when the line begins another fault. */
export function withLine(group: XidGroup, line: XidLine, place: RecordPlace): XidGroup | undefined {
  if (group.isWhole || !isSoon(group, line.xid, place) || !isSameProcess(group.line, line)) return undefined;
  const leads = rankOf(line) > rankOf(group.line);
  const [lead, other] = leads ? [line, group.line] : [group.line, line];
  const texts = [...new Set(leads ? [line.text, ...group.texts] : [...group.texts, line.text])].slice(0, MOST_FAULT_LINES);
  return { first: group.first, last: place, line: withProcess(lead, other), texts, isWhole: isLast(line) };
}

export function newGroup(line: XidLine, place: RecordPlace): XidGroup {
  return { first: place, last: place, line, texts: [line.text], isWhole: LONGEST_GAP_MS[line.xid] === undefined || isLast(line) };
}

/** The line of a stopped channel (Xid 43) names the process of a graphics exception that came just before and names none. */
export function withChannel(group: XidGroup, line: XidLine, place: RecordPlace): XidGroup {
  if (line.xid !== CHANNEL_STOPPED || group.line.xid !== GRAPHICS_EXCEPTION || line.pid === undefined) return group;
  if (group.isWhole || group.line.pid !== undefined || !isSoon(group, GRAPHICS_EXCEPTION, place)) return group;
  return { ...group, line: withProcess(group.line, line), isWhole: true };
}

/** Whether no line can follow any more. `nowMs`: on the clock of {@link RecordPlace.timeMs}. */
export function isOver({ isWhole, last, line }: XidGroup, nowMs: number): boolean {
  return isWhole || last.timeMs === undefined || Math.abs(nowMs - last.timeMs) > (LONGEST_GAP_MS[line.xid] ?? 0);
}

/** Whether a line at this place is too late to belong to the fault. */
export const isBehind = (group: XidGroup, place: RecordPlace): boolean => group.isWhole || !isSoon(group, group.line.xid, place);

/** Longest time for which a fault waits for further lines. */
export const LONGEST_WAIT_MS = Math.max(...Object.values(LONGEST_GAP_MS));

const isSoon = ({ last }: XidGroup, xid: number, place: RecordPlace): boolean =>
  Math.abs(place.timeUsec - last.timeUsec) <= (LONGEST_GAP_MS[xid] ?? 0) * 1_000;

function isSameProcess(a: XidLine, b: XidLine): boolean {
  if (a.causedBy !== b.causedBy || a.isEvent !== b.isEvent) return false;
  return a.pid === b.pid || (a.xid === GRAPHICS_EXCEPTION && (a.pid === undefined || b.pid === undefined));
}

const isLast = ({ xid, text, pid }: XidLine): boolean => xid === GRAPHICS_EXCEPTION && pid !== undefined && IS_LAST.test(text);

/** The cause is in the line that has neither registers nor the channel. */
function rankOf({ text }: XidLine): number {
  if (IS_LAST.test(text)) return 0;
  return IS_REGISTERS.test(text) ? 1 : 2;
}

function withProcess(line: XidLine, { pid, processName }: XidLine): XidLine {
  if (line.pid !== undefined || pid === undefined) return line;
  return { ...line, pid, ...(processName === undefined ? {} : { processName }) };
}
