import type { HistoryTruth, StallHistory } from './history.ts';
import type { Replayed, Told } from './replay.ts';

export type Word = HistoryTruth['state'];
export const WORDS: readonly Word[] = ['BusyWaiting', 'Stalled'];

export interface Score {
  readonly right: number;
  readonly wrong: readonly string[];
  readonly found: number;
  readonly missed: readonly string[];
  /** Intervals that nobody can know, and how many of them were told. */
  readonly unknowable: number;
  readonly toldUnknowable: number;
  /** Seconds from the begin of an interval to the answer, ascending. */
  readonly detection: readonly number[];
}

const overlaps = (told: Told, truth: HistoryTruth): boolean =>
  told.state === truth.state &&
  told.pod === truth.pod &&
  told.container === truth.container &&
  told.fromSeconds <= truth.toSeconds &&
  told.toSeconds >= truth.fromSeconds;

/** Compares the answers of one word with the truth. */
export function scoreOf(word: Word, replayed: readonly { readonly history: StallHistory; readonly result: Replayed }[]): Score {
  let [right, found, unknowable, toldUnknowable] = [0, 0, 0, 0];
  const wrong: string[] = [];
  const missed: string[] = [];
  const detection: number[] = [];
  for (const { history, result } of replayed) {
    const told = result.told.filter(({ state }) => state === word);
    const truth = history.truth.filter(({ state }) => state === word);
    for (const one of told) {
      if (truth.some((interval) => overlaps(one, interval))) right += 1;
      else wrong.push(`${history.name}: ${Math.round(one.fromSeconds)} to ${Math.round(one.toSeconds)} s`);
    }
    for (const interval of truth) {
      const answers = told.filter((one) => overlaps(one, interval));
      if (interval.unknowable !== undefined) {
        unknowable += 1;
        toldUnknowable += answers.length > 0 ? 1 : 0;
      } else if (answers.length > 0) {
        found += 1;
        detection.push(Math.min(...answers.map(({ fromSeconds }) => fromSeconds)) - interval.fromSeconds);
      } else missed.push(`${history.name}: ${Math.round(interval.fromSeconds)} to ${Math.round(interval.toSeconds)} s`);
    }
  }
  return { right, wrong, found, missed, unknowable, toldUnknowable, detection: detection.sort((a, b) => a - b) };
}

export const precisionOf = ({ right, wrong }: Score): number => right / (right + wrong.length);
export const recallOf = ({ found, missed }: Score): number => found / (found + missed.length);

/** One line of the table that the test prints. */
export function lineOf(word: Word, score: Score): string {
  const [shortest, longest] = [score.detection[0] ?? 0, score.detection.at(-1) ?? 0];
  const median = score.detection[Math.floor(score.detection.length / 2)] ?? 0;
  const minutes = (seconds: number): string => (seconds / 60).toFixed(1);
  return (
    `${word.padEnd(11)} precision ${precisionOf(score).toFixed(3)} (${score.right} of ${score.right + score.wrong.length}),` +
    ` recall ${recallOf(score).toFixed(3)} (${score.found} of ${score.found + score.missed.length}),` +
    ` detection ${minutes(shortest)} / ${minutes(median)} / ${minutes(longest)} min,` +
    ` told of what nobody can know: ${score.toldUnknowable} of ${score.unknowable}`
  );
}
