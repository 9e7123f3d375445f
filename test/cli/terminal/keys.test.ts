import { describe, expect, it } from 'vitest';
import { KeyReader } from '../../../src/cli/terminal/keys.ts';

describe('keys', () => {
  it('reads names, signs and controls', () => {
    expect(new KeyReader().read('a/é\r\u007f\u0003\u001b[A\u001bOB\u001b[5~\u001b[6~\u001b[H')).toEqual([
      'a',
      '/',
      'é',
      'enter',
      'backspace',
      'ctrl-c',
      'up',
      'down',
      'page-up',
      'page-down',
      'home',
    ]);
  });

  it('joins a sequence that comes in pieces, and takes a lone Escape for a key', () => {
    const reader = new KeyReader();
    expect(reader.read('x\u001b')).toEqual(['x']);
    expect(reader.isWaiting).toBe(true);
    expect(reader.read('[')).toEqual([]);
    expect(reader.read('B')).toEqual(['down']);
    expect(reader.read('\u001b')).toEqual([]);
    expect(reader.end()).toEqual(['escape']);
    expect([reader.isWaiting, reader.end()]).toEqual([false, []]);
  });

  it('leaves out sequences that it does not know, and never waits for more than a key has', () => {
    const reader = new KeyReader();
    expect(reader.read('\u001b[<0;3;4M\u001b[1;5Cq')).toEqual(['q']);
    expect(reader.read(`\u001b[${'1'.repeat(40)}`)[0]).toBe('escape');
    expect(reader.isWaiting).toBe(false);
  });
});
