import { readFileSync } from 'node:fs';
import type { Host } from '../../src/host/host.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { Probe } from '../../src/probes/family.ts';
import { RandomProbe } from '../support/random-collections.ts';
import { type Choose, seeded } from '../support/seeded.ts';

/** How one read ends. `hangs`: in the kernel, until the test writes. */
export type Way = 'at once' | 'later' | 'throws' | 'hangs';

export interface Turn {
  readonly way: Way;
  readonly collection: Collection;
}

/** Script of a probe, derived from the seed. The thread and the test compute the same script. */
export class Script {
  readonly #pick: Choose;
  readonly #probe: RandomProbe;

  constructor(seed: number) {
    this.#pick = seeded(seed);
    this.#probe = new RandomProbe(this.#pick);
  }

  next(): Turn {
    const collection = this.#probe.collect();
    const chance = this.#pick(40);
    return { way: chance === 0 ? 'throws' : chance === 1 ? 'hangs' : chance < 8 ? 'later' : 'at once', collection };
  }
}

/** File with the seed and the FIFO of the thread, below the root of `/sys`. */
export const SEED = 'seed';
export const FIFO = 'fifo';

class ScriptedProbe implements Probe {
  readonly #script: Script;
  readonly #fifo: string;

  constructor({ sys }: Host) {
    // Past the guard, so that a read that hangs later is at no known place.
    this.#script = new Script(Number(readFileSync(sys.path(SEED), 'utf8')));
    this.#fifo = sys.path(FIFO);
  }

  collect(): Collection | Promise<Collection> {
    const { way, collection } = this.#script.next();
    if (way === 'hangs') readFileSync(this.#fifo, 'utf8');
    if (way === 'throws') throw new Error('as scripted');
    return way === 'later' ? new Promise((resolve) => setImmediate(resolve, collection)) : collection;
  }
}

export const family = { name: 'fpga', metrics: [], createProbe: (host: Host): Probe => new ScriptedProbe(host) };
