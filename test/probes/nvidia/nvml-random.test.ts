// Project: programs. Histories in number.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { seeded } from '../../support/seeded.ts';
import { randomGpu, randomSupport, type Support } from './random-gpus.ts';
import type { ScriptedNode } from './scripted-script.ts';
import { byCommand, byLibrary, comparable, live, withoutPast } from './told-both-ways.ts';

const DRIVERS = ['580.105.08', '590.44.01', '615.71.01'];
const ROUNDS = 4;

describe('random machines', () => {
  it.each(Array.from({ length: 30 }, (_, seed) => seed + 1))('give the same with the library and the command, seed %i', async (seed) => {
    const pick = seeded(seed);
    const driver = DRIVERS[pick(DRIVERS.length)] as string;
    const supports: readonly Support[] = Array.from({ length: 1 + pick(3) }, (_, index) => randomSupport(pick, index));
    const drawn = (): ScriptedNode => ({ lines: [`driver = ${driver}`], gpus: supports.map((support) => randomGpu(pick, support)) });
    let nowMs = 0;
    const clock: Clock = { ...systemClock, monotonic: () => nowMs };
    let machine = drawn();
    const node = live(machine, (root) =>
      createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock),
    );
    // One library reads all of them, so values of an earlier machine must not appear.
    const library = byLibrary(node);
    for (let round = 0; round < ROUNDS; round += 1) {
      const told = comparable(withoutPast(await library.collect()));
      expect(told, `round ${round}`).toEqual(comparable(withoutPast(await byCommand(node, machine).collect())));
      machine = drawn();
      node.write(machine);
      nowMs += 300_000;
    }
    await library.close?.();
  });
});
