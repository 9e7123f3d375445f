import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Target {
  make(choose: (below: number) => number, at: number): string;
  check(input: string): unknown;
}

const SCRIPTS = new URL('../../scripts/fuzz/', import.meta.url);
const { targets } = (await import(new URL('targets.mjs', SCRIPTS).href)) as { targets: Record<string, () => Promise<Target>> };
const { seeded } = (await import(new URL('random.mjs', SCRIPTS).href)) as { seeded(seed: number): (below: number) => number };
const CASES = new URL('cases/', import.meta.url);
const cases = (existsSync(CASES) ? readdirSync(CASES) : []).filter((name) => name.endsWith('.json'));

describe.each(Object.keys(targets))('hostile input for %s', (name) => {
  it('does no harm', async () => {
    const target = await (targets[name] as () => Promise<Target>)();
    for (const file of cases.filter((each) => each.startsWith(`${name}-`))) {
      const { input } = JSON.parse(readFileSync(new URL(file, CASES), 'utf8')) as { input: string };
      await target.check(input);
    }
    for (let at = 0; at < 60; at += 1) {
      const input = target.make(seeded(90_000 + at), at);
      try {
        await target.check(input);
      } catch (error) {
        expect.fail(`${(error as Error).message}\nnpm run fuzz -- --only=${name} finds more; the input was:\n${input.slice(0, 2_000)}`);
      }
    }
  });
});
