import { describe, expect, it } from 'vitest';
import { casesOf } from './cases/all.ts';
import { observed } from './support/observed.ts';
import { RELEASE } from './support/real-kubelet.ts';
import { closeAfterEach } from './support/watched-node.ts';
import { WholeSimulation } from './support/whole-simulation.ts';

closeAfterEach();

describe('the simulated kubelet', () => {
  for (const one of casesOf(RELEASE)) {
    it(one.name, async () => {
      expect(await observed(new WholeSimulation({ ...one, release: RELEASE }), one)).toEqual(one.expected);
    });
  }
});
