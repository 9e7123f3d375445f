import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeState } from '../../src/health/journal/state-file.ts';
import { repetitions } from '../support/repetitions.ts';

const BOOT = 'this-boot';
const KILLS = repetitions(8, 50);

let folder = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-kill-'));
  await build({
    entryPoints: ['test/health/writing-agent.ts'],
    outfile: join(folder, 'agent.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program, kills it at a random time after its first output, and returns its output. */
function runAndKill(path: string, afterMs: number): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, 'agent.mjs'), path, BOOT], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    let armed = false;
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (armed || !text.includes('tell')) return;
      armed = true;
      setTimeout(() => child.kill('SIGKILL'), afterMs);
    });
    child.on('error', reject);
    child.on('close', () => resolve(text.slice(0, text.lastIndexOf('\n')).split('\n')));
  });
}

describe('an agent killed at random moments', () => {
  it(`finds its state after each of ${KILLS} kills, still knows the latched fault, and reports no transition twice`, async () => {
    const path = join(folder, 'health.json');
    const told: number[] = [];
    let lastWritten = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const [start, ...lines] = await runAndKill(path, Math.random() * 25);
      expect(start).toBe(kill === 0 ? 'start absent' : 'start restored');
      if (kill > 0) expect(lines.filter((line) => line.includes('Latched') && !line.includes('state'))).toEqual([]);
      const ids = lines.map((line) => Number(line.split(' ')[1]));
      expect(ids[0], 'an event that was written is not judged again').toBeGreaterThan(lastWritten);
      told.push(...ids);
      const read = await decodeState(readFileSync(path, 'utf8'), BOOT);
      expect(read.ignored).toBeUndefined();
      expect(read.state?.devices['test/one']?.conditions.Latched).toMatchObject({ phase: 'active' });
      expect(read.state?.devices['test/one']?.transitions.unhealthy, 'the fault is one transition').toBe(1);
      lastWritten = read.state?.lastEventId ?? 0;
      expect(lastWritten, 'what was told was written before').toBeGreaterThanOrEqual(ids.at(-1) as number);
    }
    expect(new Set(told).size).toBe(told.length);
    expect(told.length).toBeGreaterThan(KILLS);
  });
});
