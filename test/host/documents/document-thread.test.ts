import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { DocumentThread } from '../../../src/host/documents/document-thread.ts';
import { documentKinds } from '../../../src/kubelet/document-kinds.ts';
import { ManualClock } from '../../kubelet/support/manual-clock.ts';
import { eventually } from '../../support/until.ts';

const directory = mkdtempSync(join(tmpdir(), 'document-thread-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** A thread whose parser does `code` for documents that say so, and else answers the number of its documents. */
function threadThat(name: string, code: string, clock = new ManualClock()): DocumentThread {
  const entry = join(directory, `${name}.mjs`);
  const answer = 'parentPort.postMessage({ value: (count += 1), isComplete: true })';
  const body = `if (Buffer.from(bytes).toString() === 'bad') { ${code} } else ${answer};`;
  writeFileSync(
    entry,
    `import { parentPort } from 'node:worker_threads'; let count = 0; parentPort.on('message', ({ bytes }) => { ${body} });`,
  );
  return new DocumentThread(pathToFileURL(entry), documentKinds, clock);
}
const job = (text: string) => ({ kind: 'cdi', bytes: Buffer.from(text), wanted: [] });

describe('the thread that parses documents', () => {
  it('is ended when a document takes too long, and the next document has a new one', async () => {
    const clock = new ManualClock();
    const thread = threadThat('endless', 'for (;;);', clock);
    expect(await thread.parse(job('good'))).toEqual({ value: 1, isComplete: true });
    const answers = [thread.parse(job('bad')), thread.parse(job('good'))];
    await eventually(() => expect(clock.pendingTimers).toBeGreaterThan(0));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(5_000);
    expect(await Promise.all(answers)).toEqual([
      { code: 'too-slow', reason: 'the parser was ended: it has not ended after 5000 ms' },
      { value: 1, isComplete: true },
    ]);
    thread.close();
  });

  it('is ended when a document takes too much memory, and the process goes on', async () => {
    const thread = threadThat('greedy', 'const all = []; for (;;) all.push(Array.from({ length: 1000 }, () => ({})));');
    // Where the limits do not fit together, V8 ends the process at most times, and not at each.
    for (let round = 0; round < 3; round += 1) {
      expect(await thread.parse(job('bad'))).toEqual({ code: 'too-complex', reason: 'the parser was ended: it takes too much memory' });
      expect(await thread.parse(job('good'))).toEqual({ value: 1, isComplete: true });
    }
    thread.close();
  });

  it('tells an error of its program', async () => {
    const thread = threadThat('faulty', "throw new Error('a fault');");
    expect(await thread.parse(job('bad'))).toEqual({ code: 'too-complex', reason: 'the parser was ended: a fault' });
    thread.close();
  });

  it('ends when it has nothing to do, and starts again', async () => {
    const clock = new ManualClock();
    const thread = threadThat('idle', '', clock);
    for (let round = 0; round < 2; round += 1) {
      expect(await thread.parse(job('good'))).toEqual({ value: 1, isComplete: true });
      expect(await thread.parse(job('good'))).toEqual({ value: 2, isComplete: true });
      clock.advance(2_000);
    }
  });

  it('answers a document that it is closed with', async () => {
    const thread = threadThat('closed', '');
    const answer = thread.parse(job('bad'));
    await new Promise((resolve) => setImmediate(resolve));
    thread.close();
    expect(await answer).toEqual({ code: 'too-slow', reason: 'the parser was ended: its thread was ended' });
  });

  it('does not start for a small document of JSON', async () => {
    const thread = new DocumentThread(pathToFileURL('/nowhere.js'), documentKinds, systemClock);
    const spec = '{"kind":"a/b","cdiVersion":"1.0.0","devices":[{"name":"c","containerEdits":{"env":["A=1"]}}]}';
    expect(await thread.parse(job(spec))).toMatchObject({ isComplete: true, value: { names: new Set(['a/b=c']) } });
  });
});
