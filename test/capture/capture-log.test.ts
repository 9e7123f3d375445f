import { describe, expect, it } from 'vitest';
import { CaptureLog } from '../../src/capture/capture-log.ts';
import type { ObservedCall } from '../../src/model/observation.ts';

const call = (code: number, rest: Partial<ObservedCall> = {}): ObservedCall => ({
  kind: 'library',
  symbol: 'acmeRead',
  types: 'u',
  values: ['7'],
  code,
  memory: [],
  ...rest,
});
const TIMES = { atMs: 0, wallMs: 0, page: '' };

describe('calls of a library in a capture', () => {
  it('have the latest answer of a value, once until it changes', () => {
    const log = new CaptureLog([]);
    for (const code of [1, 2, 2]) log.take(call(code));
    expect(log.cut(TIMES).library.map(({ code }) => code)).toEqual([2]);
    log.take(call(2));
    expect(log.cut(TIMES).library).toEqual([]);
  });

  it('have each event with its number, because each call takes another event', () => {
    const log = new CaptureLog([]);
    for (const code of [0, 0]) log.take(call(code, { isEvent: true }));
    expect(log.cut(TIMES).library.map(({ code, event }) => [code, event])).toEqual([
      [0, 0],
      [0, 1],
    ]);
    log.take(call(0, { isEvent: true }));
    expect(log.cut(TIMES).library.map(({ event }) => event)).toEqual([2]);
  });
});
