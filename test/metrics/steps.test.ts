import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createExposition, type Exposition } from '../../src/metrics/page/exposition.ts';
import { inSlices } from '../../src/metrics/page/steps.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { families, snapshot, stats } from './sample.ts';

const textOf = async (page: Exposition): Promise<string> => Buffer.concat((await page.page('text')).plain).toString();

/** Takes longer than a slice. */
function* slowly(steps: number): Generator<undefined, number> {
  for (let n = 0; n < steps; n += 1) {
    const begunMs = performance.now();
    while (performance.now() - begunMs < 25);
    yield;
  }
  return steps;
}

describe('a page in steps', () => {
  it('lets the event loop turn between steps that take long', async () => {
    let turns = 0;
    let isDone = false;
    const counting = (async () => {
      for (; !isDone; turns += 1) await turn();
    })();
    expect(await inSlices(slowly(5))).toBe(5);
    isDone = true;
    await counting;
    expect(turns).toBeGreaterThanOrEqual(5);
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
