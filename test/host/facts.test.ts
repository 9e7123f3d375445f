import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { Tree } from '../../src/host/fs/tree.ts';

// The built file: it starts a thread.
const { readHostFacts }: typeof import('../../src/host/facts.ts') = await import(new URL('../../dist/host/facts.js', import.meta.url).href);

it('omits the operating system when sysfs is mounted elsewhere, because it would be that of the image, and a filler model', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'device-agent-facts-'));
  try {
    const facts = await readHostFacts(new Tree(elsewhere), systemClock);
    expect(facts).not.toHaveProperty('operatingSystem');
    expect(facts).not.toHaveProperty('model');
    expect(facts.kernel).toBeTruthy();
    expect(facts.cpus).toBeGreaterThan(0);
    expect(facts.memoryBytes).toBeGreaterThan(0);
  } finally {
    rmSync(elsewhere, { recursive: true });
  }
});
