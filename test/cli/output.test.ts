import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createOutput } from '../../src/cli/output.ts';

function broken(code: string): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })) });
}

describe('output', () => {
  it('notices once that nobody reads any more, and then writes nothing', async () => {
    const output = createOutput(broken('EPIPE'));
    let told = 0;
    output.onClosed(() => told++);
    await output.write('a');
    await output.write('b');
    expect([output.isClosed(), told]).toEqual([true, 1]);
  });

  it('fails, with what to do, where there is no room for it', async () => {
    const output = createOutput(broken('ENOSPC'));
    await expect(output.write('a')).rejects.toMatchObject({ code: 'output-failed', message: 'the output cannot be written: ENOSPC' });
  });

  it('hands on what the stream takes', async () => {
    const parts: string[] = [];
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        parts.push(String(chunk));
        done();
      },
    });
    const output = createOutput(stream);
    await output.write('a');
    await output.write('');
    await output.write('b');
    expect([parts, output.isClosed()]).toEqual([['a', 'b'], false]);
  });
});
