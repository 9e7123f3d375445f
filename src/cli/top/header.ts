import type { Board } from '../../board/board.ts';
import { STATE_ORDER } from '../../board/order.ts';
import { clockText, durationText } from '../../board/units.ts';
import { STATE_NAMES } from '../../board/words.ts';
import { type Line, type Size, type Span, span } from '../terminal/frame.ts';
import { STATE_STYLES } from './columns.ts';

/** What the header says beside the board. */
export interface SourceState {
  readonly source: string;
  /** Why there is no newer board. */
  readonly problem?: string;
  /** Time since which it is so, by the clock of this command. */
  readonly problemSinceMs?: number;
}

/** A low terminal shows only the counts, and what is wrong. */
const LOW_ROWS = 10;

export function headerLines(board: Board | undefined, sourceState: SourceState, { rows }: Size): readonly Line[] {
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
  const { node } = board;
  const [takenAtMs, nowMs] = [Date.parse(board.takenAt), Date.parse(board.now)];
  const title: Line = [
    span('device-agent', 'strong'),
    ...(node === undefined ? [] : [span(`  node ${node}`)]),
    span(`  ${clockText(takenAtMs, nowMs)}, ${durationText(nowMs - takenAtMs)} ago`),
    span(`  ${source}`, 'faint'),
  ];
  return [title, ...trouble, countLine(board), stateLine(board)];
}

/** How many devices are in each state, the worst first, and how many are held. */
function countLine({ counts }: Board): Line {
  const states = STATE_ORDER.flatMap((state): Span[] => {
    const count = counts.states[state] ?? 0;
    return count === 0 ? [] : [span(`${count} ${STATE_NAMES[state].toLowerCase()}`, STATE_STYLES[state])];
  });
  const pending = counts.pending === 0 ? [] : [span(`${counts.pending} pending`, 'mild')];
  const held = [span(`${counts.held} held`), ...(counts.heldByParts === 0 ? [] : [span(`${counts.heldByParts} held by parts`)])];
  return [span(`${counts.devices} ${counts.devices === 1 ? 'device' : 'devices'}: `), ...joined([...states, ...pending, ...held])];
}

/** What the agent reads from. What is wrong comes first, because a narrow terminal cuts the line. */
function stateLine({ kubelet, families, problems, unresolved }: Board): Line {
  const isGood = kubelet.state === 'answers';
  const working = families.filter(({ devices, state }) => devices > 0 && state === 'works').map(({ family }) => family);
  const kept = kubelet.kept === 0 ? '' : `, ${kubelet.kept} allocations kept`;
  const parts = [
    span(`kubelet ${kubelet.state}${kept}`, isGood ? 'text' : 'bad'),
    ...families
      .filter(({ state }) => state !== 'works')
      .map(({ family, state }) => span(`${family} ${state}`, state === 'starts' ? 'faint' : 'bad')),
    ...(problems.length === 0 ? [] : [span(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`, 'mild')]),
    ...(unresolved.length === 0 ? [] : [span(`${unresolved.length} without a device`, 'mild')]),
    ...(working.length === 0 ? [] : [span(`${working.join(', ')} ${working.length === 1 ? 'works' : 'work'}`)]),
  ];
  return joined(parts);
}

const joined = (parts: readonly Span[]): Line => parts.flatMap((part, at) => (at === 0 ? [part] : [span(' · ', 'faint'), part]));
