import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';

/** A program that ends only when it is killed. `mark`: what it has in its environment. */
function sleeper(mark: string): ChildProcess {
  const child = spawn('sleep', ['300'], { env: { PATH: process.env.PATH, TEST_RUN: mark }, detached: true, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it('what tests started ends with their run, however that ends, and nothing else does', async () => {
  const mark = randomUUID();
  const [own, other] = [sleeper(mark), sleeper(randomUUID())];
  // The run: it holds the pipe, as the test runner does, and is killed.
  const run = `const { spawn } = require('node:child_process');
    const guard = spawn(process.execPath, ['test/support/guard.mjs', 'TEST_RUN=${mark}'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    guard.once('spawn', () => process.stdout.write('guarded'));
    setInterval(() => {}, 1_000);`;
  const runner = spawn(process.execPath, ['-e', run], { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void runner.kill('SIGKILL'));
  let said = '';
  runner.stdout.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  await expect.poll(() => said).toBe('guarded');
  expect(own.signalCode).toBeNull();
  runner.kill('SIGKILL');
  await expect.poll(() => own.signalCode).toBe('SIGKILL');
  expect([other.exitCode, other.signalCode]).toEqual([null, null]);
});
