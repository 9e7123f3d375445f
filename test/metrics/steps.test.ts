import { describe, expect, it } from 'vitest';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import { Work } from '../../src/metrics/page/steps.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { families, snapshot, stats } from './sample.ts';

const textOf = async (page: Exposition): Promise<string> => Buffer.concat((await page.page('text')).plain).toString();

describe('a page in steps', () => {
  it('lets the event loop turn between steps, and is finished at once for whoever needs it', async () => {
    let turns = 0;
    function* steps(): Generator<undefined, number> {
      for (let n = 0; n < 5; n += 1) {
        setImmediate(() => (turns += 1));
        yield;
      }
      return turns;
    }
    const work = new Work(steps());
    await work.inTurns();
    expect(work.result).toBe(5);
    turns = 0;
    expect(new Work(steps()).result).toBe(0);
  });

  it('shows one snapshot, also when the next one comes while it is written', async () => {
    let latest: Snapshot = {
      ...snapshot,
      get devices() {
        // The next snapshot comes as soon as the page reads the devices of this one.
        latest = { ...snapshot, devices: [] };
        return snapshot.devices;
      },
    };
    const page = createExposition({ families, snapshot: () => latest, agent: () => stats });
    const whole = createExposition({ families, snapshot: () => snapshot, agent: () => stats }).devices();
    expect((await textOf(page)).startsWith(whole)).toBe(true);
    expect((await textOf(page)).startsWith(whole)).toBe(false);
  });
});
