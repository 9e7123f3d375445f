import type { Board } from '../../board/board.ts';
import { stateCounts } from '../../board/order.ts';
import { findingsOf, sentenceOf, subjectOf, worstOf } from '../../board/summary.ts';
import { clockText } from '../../board/units.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { durationText } from '../../model/duration.ts';
import { type Line, type Size, type Span, span, widthOf, wrapText } from '../terminal/frame.ts';
import { STATE_STYLES } from './columns.ts';

/** The source of the board, and why it has no newer board. */
export interface SourceState {
  readonly source: string;
  /** Why there is no newer board. */
  readonly problem?: string;
  /** Time since which it is so, by the clock of this command. */
  readonly problemSinceMs?: number;
}

/** A low terminal shows only the counts, and what is wrong. */
const LOW_ROWS = 10;
const COMMAND_ROWS = 20;

/** The header: first what is wrong and what to do, then the counts, then the sources of the agent. */
export function headerLines(board: Board | undefined, sourceState: SourceState, size: Size): readonly Line[] {
  const { rows, columns } = size;
  const { source, problem, problemSinceMs } = sourceState;
  const trouble: Line[] =
    problem === undefined
      ? []
      : [
          [
            span(
              `! ${problem}${problemSinceMs === undefined ? '' : ` since ${clockText(problemSinceMs, problemSinceMs)}`}${
                board === undefined ? '' : '; this is the last board'
              }.`,
              'bad',
            ),
          ],
        ];
  if (board === undefined) {
    const waits: Line[] = problem === undefined ? [[span('Reading the devices …', 'faint')]] : [];
    return [[span('device-agent', 'strong'), span(`  ${source}`, 'faint')], ...trouble, ...waits];
  }
  if (rows < LOW_ROWS) return [...trouble, countLine(board)];
  const findings = findingsOf(board);
  const [first] = findings;
  const style = STATE_STYLES[worstOf(board, findings)];
  const told = wrapText(sentenceOf(board, findings), columns);
  // The last line has the rest, and the screen cuts it.
  const texts = [...told.slice(0, MOST_SENTENCE_LINES - 1), told.slice(MOST_SENTENCE_LINES - 1).join(' ')];
  const sentence = texts.filter((text) => text !== '').map((text): Line => [span(text, style)]);
  const others = findings
    .slice(1)
    .filter(({ appearance }) => appearance !== 'recovering')
    .map((one) => `${subjectOf(one)} ${one.phrase}`);
  const more: Line[] =
    others.length === 0 || rows < COMMAND_ROWS
      ? []
      : [[span(`and ${others.length} more ${others.length === 1 ? 'fault' : 'faults'}`, 'strong'), span(`: ${others.join('; ')}`)]];
  const command: Line[] =
    first?.command === undefined || rows < COMMAND_ROWS ? [] : [[span('run: ', 'faint'), span(first.command, 'strong')]];
  const lines = [...sentence, ...trouble, ...command, ...more, countLine(board), stateLine(board, source)];
  return withClock(lines, board, size);
}

const MOST_SENTENCE_LINES = 3;

/** Puts node and time at the right end of the first line that has room, or on a line of their own. */
function withClock(lines: readonly Line[], { node, takenAt, now }: Board, { rows, columns }: Size): readonly Line[] {
  const [takenAtMs, nowMs] = [Date.parse(takenAt), Date.parse(now)];
  const text = `${node === undefined ? '' : `${node} · `}${clockText(takenAtMs, nowMs)}, ${durationText(nowMs - takenAtMs)} ago`;
  const cellsOf = (line: Line): number => line.reduce((sum, one) => sum + widthOf(one.text), 0);
  const found = lines.findIndex((line) => cellsOf(line) + 2 + widthOf(text) <= columns);
  if (found < 0) return rows < COMMAND_ROWS ? lines : [...lines, [span(text, 'faint')]];
  const pad = (line: Line): Line => [span(' '.repeat(Math.max(2, columns - cellsOf(line) - widthOf(text))))];
  return lines.map((line, place) => (place === found ? [...line, ...pad(line), span(text, 'faint')] : line));
}

/** How many devices are in each state, the worst first, and how many are held. */
function countLine({ counts, devices }: Board): Line {
  const states = stateCounts(devices).map(([state, count]) => span(`${count} ${STATE_NAMES[state].toLowerCase()}`, STATE_STYLES[state]));
  const known = devices.some(({ use }) => use === 'unknown') ? 'known to be ' : '';
  const held = [span(`${counts.held} ${known}held`), ...(counts.heldByParts === 0 ? [] : [span(`${counts.heldByParts} held by parts`)])];
  return [span(`${counts.devices} ${counts.devices === 1 ? 'device' : 'devices'}: `), ...joined([...states, ...held])];
}

/** The sources of the agent. What is wrong comes first, because a narrow terminal cuts the line. */
function stateLine({ kubelet, families, problems, unresolved }: Board, source: string): Line {
  const isGood = kubelet.state === 'answers';
  const isAgent = source.startsWith('agent ');
  const working = families.filter(({ devices, state }) => devices > 0 && state === 'works').map(({ family }) => family);
  const kept = kubelet.kept === 0 ? '' : `, ${kubelet.kept} allocations kept`;
  const parts = [
    span(`kubelet ${kubelet.state}${kept}`, isGood ? 'text' : 'bad'),
    // That no agent answers is worth more than what works.
    ...(isAgent ? [] : [span(source, 'mild')]),
    ...families
      .filter(({ state }) => state !== 'works')
      .map(({ family, state }) => span(`${family} ${state}`, state === 'starts' ? 'faint' : 'bad')),
    ...(problems.length === 0 ? [] : [span(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`, 'mild')]),
    ...(unresolved.length === 0 ? [] : [span(`${unresolved.length} without a device`, 'mild')]),
    ...(working.length === 0 ? [] : [span(`${working.join(', ')} ${working.length === 1 ? 'works' : 'work'}`)]),
    ...(isAgent ? [span(source, 'faint')] : []),
  ];
  return joined(parts);
}

const joined = (parts: readonly Span[]): Line => parts.flatMap((part, at) => (at === 0 ? [part] : [span(' · ', 'faint'), part]));
