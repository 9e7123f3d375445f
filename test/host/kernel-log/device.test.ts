import { closeSync, constants, openSync, readdirSync, readSync, writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { type KmsgMessage, openKmsg } from '../../../src/host/kernel-log/reader.ts';

const DEVICE = '/dev/kmsg';

/** Why the log of this machine cannot be used; undefined when it is usable. */
function obstacle(flags: number): string | undefined {
  try {
    const fd = openSync(DEVICE, flags | constants.O_NONBLOCK);
    try {
      if (flags === constants.O_RDONLY) readSync(fd, Buffer.alloc(8_192), 0, 8_192, null);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

const unreadable = obstacle(constants.O_RDONLY);
const unwritable = obstacle(constants.O_WRONLY);
const descriptors = (): number => readdirSync('/proc/self/fd').length;

describe.skipIf(unreadable !== undefined)(
  `the kernel log of this machine${unreadable === undefined ? '' : ` (${DEVICE}: ${unreadable})`}`,
  () => {
    it('is read completely, record by record and in order, without blocking', () => {
      const before = descriptors();
      const messages: KmsgMessage[] = [];
      const reader = openKmsg({ path: DEVICE, clock: systemClock, bootTimeMs: 0, onRecord: (message) => messages.push(message) });
      reader.poll();
      expect(reader.status()).toMatchObject({ records: messages.length, malformed: 0 });
      expect(reader.status().problem).toBeUndefined();
      expect(messages.length).toBeGreaterThan(0);
      const numbers = messages.map(({ seq }) => seq);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
      expect(new Set(numbers).size).toBe(numbers.length);
      expect(messages.every(({ live }) => !live)).toBe(true);
      reader.close();
      expect(descriptors()).toBe(before);
    });

    it.skipIf(unwritable !== undefined)(`tells of a new line${unwritable === undefined ? '' : ` (cannot write: ${unwritable})`}`, () => {
      const messages: KmsgMessage[] = [];
      const reader = openKmsg({ path: DEVICE, clock: systemClock, onRecord: (message) => messages.push(message) });
      reader.poll();
      const text = `device-agent test ${process.pid} 50 °C`;
      const fd = openSync(DEVICE, constants.O_WRONLY);
      writeSync(fd, `${text}\n`);
      closeSync(fd);
      reader.poll();
      reader.close();
      expect(messages.find((message) => message.live && message.text === text)).toMatchObject({ origin: 'program' });
    });

    it('does not keep a thread from ending while it is followed', async () => {
      const contents = `
      import { parentPort } from 'node:worker_threads';
      import { openKmsg } from './src/host/kernel-log/reader.ts';
      import { systemClock } from './src/host/clock.ts';
      let records = 0;
      const reader = openKmsg({ path: '${DEVICE}', clock: systemClock, onRecord: () => records++ });
      reader.poll();
      reader.follow();
      parentPort.postMessage(records);`;
      const stdin = { contents, resolveDir: process.cwd() };
      const logOverride = { 'empty-import-meta': 'silent' } as const;
      const bundle = await build({ stdin, bundle: true, platform: 'node', format: 'cjs', write: false, logOverride });
      const worker = new Worker(bundle.outputFiles[0]?.text ?? '', { eval: true });
      const ended = new Promise((resolve, reject) => {
        worker.once('exit', resolve);
        worker.once('error', reject);
      });
      const records = await new Promise((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
      });
      expect(records).toBeGreaterThan(0);
      await expect(ended).resolves.toBe(0);
    });
  },
);
