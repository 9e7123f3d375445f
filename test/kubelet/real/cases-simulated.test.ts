import { describe, expect, it } from 'vitest';
import { CASES } from './cases/all.ts';
import { observed } from './support/observed.ts';
import { closeAfterEach } from './support/watched-node.ts';
import { WholeSimulation } from './support/whole-simulation.ts';

closeAfterEach();

describe('the simulated kubelet', () => {
  for (const one of CASES) {
    it(one.name, async () => {
      expect(await observed(new WholeSimulation(one), one)).toEqual(one.expected);
    });
  }
});
