import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { answerRead, IsolatedChannel } from '../../../src/host/fs/isolated-channel.ts';

/** A channel whose owner answers at once. */
function channelTo(answer: (path: string, limit: number) => Uint8Array | string): IsolatedChannel {
  return new IsolatedChannel((path, limit, memory) => answerRead(memory, answer(path, limit)));
}

describe('a read through shared memory', () => {
  it('returns the bytes or the error of the answer, and nothing of earlier answers', () => {
    const answers: Record<string, Uint8Array | string> = {
      a: Buffer.from('long text'),
      b: 'ENOENT',
      c: Buffer.from('x'),
      d: Buffer.alloc(0),
    };
    const channel = channelTo((path) => answers[path] as string);
    expect(['a', 'b', 'c', 'd'].map((path) => `${channel.read(path, 100)}`)).toEqual(['long text', 'ENOENT', 'x', '']);
    expect(Buffer.isBuffer(channel.read('d', 100))).toBe(true);
    expect(typeof channel.read('b', 100)).toBe('string');
  });

  it('returns bytes that no later read changes', () => {
    const channel = channelTo((path) => Buffer.from(path));
    const first = channel.read('first', 100);
    channel.read('other', 100);
    expect(`${first}`).toBe('first');
  });

  it('requests no more bytes than its capacity', () => {
    const limits: number[] = [];
    const channel = channelTo((_, limit) => {
      limits.push(limit);
      return Buffer.alloc(100_000, 'x');
    });
    expect([channel.read('a', 10).length, channel.read('a', 1_000_000).length]).toEqual([65_536, 65_536]);
    expect(limits).toEqual([10, 65_536]);
  });

  it('never returns the answer to an earlier read', () => {
    const memories: SharedArrayBuffer[] = [];
    const channel = new IsolatedChannel((path, _, memory) => {
      memories.push(memory);
      if (path === 'second') answerRead(memories[0] as SharedArrayBuffer, Buffer.from('text of first'));
    }, 10);
    expect(channel.read('first', 100)).toBe('EHUNG');
    expect(channel.read('second', 100)).toBe('EHUNG');
  });

  it('waits synchronously in a thread', async () => {
    const module = pathToFileURL(resolve('dist/host/fs/isolated-channel.js')).href;
    const program = `
      const { parentPort } = require('node:worker_threads');
      import('${module}').then(({ IsolatedChannel }) => {
        const channel = new IsolatedChannel((path, limit, memory) => parentPort.postMessage({ path, limit, memory }));
        parentPort.postMessage({ told: ['a', 'b', 'c'].map((path) => String(channel.read(path, 10))) });
      });`;
    const thread = new Worker(program, { eval: true });
    const told = await new Promise((done, failed) => {
      thread.on('error', failed);
      thread.on('message', ({ path, memory, told }: { path?: string; memory?: SharedArrayBuffer; told?: readonly string[] }) => {
        if (told !== undefined) done(told);
        else if (memory !== undefined) setTimeout(() => answerRead(memory, path === 'b' ? 'EHUNG' : Buffer.from(`text of ${path}`)), 5);
      });
    });
    expect(told).toEqual(['text of a', 'EHUNG', 'text of c']);
    await thread.terminate();
  });
});
