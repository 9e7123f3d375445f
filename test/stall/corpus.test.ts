// Project: programs. It goes through hours of many jobs.
import { beforeAll, describe, expect, it } from 'vitest';
import { histories as independent } from './corpus/independent.ts';
import { histories as own } from './corpus/own.ts';
import type { StallHistory } from './history.ts';
import { type Replayed, replay } from './replay.ts';
import { lineOf, precisionOf, recallOf, scoreOf, WORDS } from './score.ts';

interface Result {
  readonly history: StallHistory;
  readonly result: Replayed;
}

/** Written beside the detector. Those of other files were written from the README alone, so their figures say more; they are printed apart. */
const SETS = { 'beside the detector': own, 'by others': independent };

/** The detector's answers to each history, without its reads, and the table of them. */
function replayAll(whose: keyof typeof SETS): { readonly results: readonly Result[]; readonly table: string } {
  const results = SETS[whose].map((one): Result => {
    const { reads, ...history } = one.make();
    return { history: { ...history, reads: [] }, result: replay({ ...history, reads }) };
  });
  const lines = WORDS.flatMap((word) => {
    const score = scoreOf(word, results);
    return [lineOf(word, score), ...score.wrong.map((name) => `  wrong:  ${name}`), ...score.missed.map((name) => `  missed: ${name}`)];
  });
  return { results, table: `${results.length} histories ${whose}\n${lines.join('\n')}\n` };
}

/** Nothing of these kinds may give an alarm. */
const SOUND = ['training', 'evaluation', 'compile', 'starvation', 'idle-inference', 'straggler', 'slow'];

describe('the detector of waiting containers', () => {
  let results: readonly Result[] = [];

  beforeAll(() => {
    const { results: ofOwn, table } = replayAll('beside the detector');
    results = ofOwn;
    // Nothing is demanded of the figures of others: they are printed where nobody waits.
    process.stdout.write(process.env.CI === undefined ? '' : table + replayAll('by others').table);
  });

  it('has histories of each kind, and each has a name of its own', () => {
    const kinds = new Set(results.map(({ history }) => history.kind));
    expect(
      [...SOUND, 'checkpoint', 'dead-rank', 'hang', 'bursty-inference', 'nvlink-only', 'shared', 'unread', 'restart'].filter(
        (kind) => !kinds.has(kind),
      ),
    ).toEqual([]);
    expect(new Set(results.map(({ history }) => history.name)).size).toBe(results.length);
  });

  it('is right in 95 of 100 answers that a container waits, and finds 9 of 10 who do', () => {
    const score = scoreOf('BusyWaiting', results);
    expect(precisionOf(score)).toBeGreaterThanOrEqual(0.95);
    expect(recallOf(score)).toBeGreaterThanOrEqual(0.9);
  });

  it('says of one checkpoint only that the job hangs: the first one that only another node knows of', () => {
    const { wrong } = scoreOf('Stalled', results);
    expect(wrong).toEqual([expect.stringMatching(/^three checkpoints of 20 minutes that another node writes.*: 3\d{3} to/)]);
  });

  it('finds hangs after steps that the usual refresh shows; those of steps of 2 s need reads each second', () => {
    const { missed } = scoreOf('Stalled', results);
    expect(missed.filter((name) => !/steps of 2 s.*each 10 s|after six minutes of work/.test(name))).toEqual([]);
  });

  it('finds them within 11 minutes', () => {
    for (const word of WORDS) expect(scoreOf(word, results).detection.at(-1)).toBeLessThanOrEqual(11 * 60);
  });

  it('says nothing of containers that work, load, compile or serve, and nothing that it cannot know', () => {
    expect(
      results.filter(({ history, result }) => SOUND.includes(history.kind) && result.told.length > 0).map(({ history }) => history.name),
    ).toEqual([]);
    for (const word of WORDS) expect(scoreOf(word, results).toldUnknowable).toBe(0);
  });

  it('estimates the length of the steps where the reads show them', () => {
    for (const { history, result } of results) {
      const [real] = history.steps ?? [];
      if (real === undefined || real.stepSeconds < 2 * history.everySeconds) continue;
      expect(result.steps.at(-1)?.stepSeconds, history.name).toBeGreaterThan(real.stepSeconds * 0.9);
      expect(result.steps.at(-1)?.stepSeconds, history.name).toBeLessThan(real.stepSeconds * 1.1);
    }
  });
});
