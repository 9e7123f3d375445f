import { describe, expect, it } from 'vitest';
import type { LedgerEntry } from '../../src/accounting/ledger.ts';
import { timeParts, unobservedTexts, wasteSentence } from '../../src/accounting/waste.ts';
import { containerEntry, HOUR, HOUR_MS, START_MS, usageReport } from './sample.ts';

const of = (entries: readonly LedgerEntry[], priced = {}) =>
  usageReport(entries, { sinceMs: START_MS, untilMs: START_MS + 40 * HOUR_MS, by: 'pod', ...priced });
const notebook = containerEntry(20, {
  namespace: 'research',
  pod: 'notebook-3',
  idleSeconds: 7 * HOUR,
  device: 'toy/b',
  busySeconds: { gpu: 1 },
});
const training = containerEntry(20, { idleSeconds: 5 * HOUR, busySeconds: { gpu: 1 } });

describe('the sentence about waste', () => {
  it('says how much was idle, and who had most of it', () => {
    expect(wasteSentence(of([training, notebook]))).toBe('12 of 40 device hours idle: 7 of them research/notebook-3.');
    expect(wasteSentence(of([training, notebook], { prices: { toy: 2 }, currency: 'EUR' }))).toBe(
      '12 of 40 device hours idle: 7 of them research/notebook-3. Idle cost: 24.00 EUR.',
    );
    expect(wasteSentence(of([]))).toBeUndefined();
  });

  it('never calls time well used that was not observed', () => {
    const blind = containerEntry(10, { unobservedSeconds: 10 * HOUR });
    expect(wasteSentence(of([blind]))).toBe('How much of 10 device hours was idle is not known: 100 % of the time was not observed.');
    const half = containerEntry(10, { unobservedSeconds: 5 * HOUR, busySeconds: { gpu: 5 * HOUR } });
    expect(wasteSentence(of([half]))).toBe('Nearly no idle time was seen in 10 device hours; 50 % of the time was not observed.');
    expect(wasteSentence(of([containerEntry(10, { busySeconds: { gpu: 1 } })]))).toBe('Nearly none of 10 device hours idle.');
  });

  it('has the share of a shared device', () => {
    const shared = containerEntry(20, { shareSeconds: 10 * HOUR, idleSeconds: 8 * HOUR });
    expect(wasteSentence(of([shared]))).toBe('4 of 10 device hours idle: 4 of them ml/train-0.');
  });
});

describe('the parts of the time', () => {
  it('add up to the time that was not delegated', () => {
    const part = { allocatedSeconds: 100, delegatedSeconds: 20, idleSeconds: 20, unobservedSeconds: 40 };
    expect(timeParts(part)).toEqual({ busy: 0.25, idle: 0.25, unobserved: 0.5 });
    expect(timeParts({ ...part, delegatedSeconds: 100 })).toBeUndefined();
    expect(timeParts({ ...part, unobservedSeconds: 81 }), 'rounding of the ledger').toEqual({ busy: 0, idle: 0, unobserved: 1 });
  });
});

describe('why time was not observed', () => {
  it.each([
    ['never-read', {}, 'no reading tells what the device does'],
    ['shared', { shareSeconds: 5 * HOUR }, 'other containers hold the device too'],
    ['gaps', { busySeconds: { gpu: 1 } }, 'reads or answers of the kubelet are missing'],
  ])('is %s', (reason, part, text) => {
    const { total } = of([containerEntry(10, { unobservedSeconds: 10 * HOUR, ...part })]);
    expect(total.unobservedBecause).toEqual({ [reason]: 10 * HOUR });
    expect(unobservedTexts(total)).toEqual([expect.stringContaining(text)]);
  });

  it('is not told of the last seconds of a container', () => {
    const { total } = of([containerEntry(10, { unobservedSeconds: 5, busySeconds: { gpu: 1 } })]);
    expect(unobservedTexts(total)).toEqual([]);
  });
});
