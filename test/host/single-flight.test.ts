import { describe, expect, it } from 'vitest';
import { SingleFlight } from '../../src/host/single-flight.ts';

/** Work whose runs end when told. */
function controlled() {
  const ends: ((value: number) => void)[] = [];
  const flight = new SingleFlight(() => new Promise<number>((resolve) => void ends.push(resolve)));
  return { ends, flight };
}

describe('work that runs one at a time', () => {
  it.each([
    ['ends in the turn in which it begins', async () => 1],
    ['throws in that turn', async () => Promise.reject(new Error('disk'))],
    [
      'throws before it has a promise',
      () => {
        throw new Error('disk');
      },
    ],
  ])('runs anew at each call when it %s', async (_, work) => {
    let runs = 0;
    const flight = new SingleFlight(() => {
      runs += 1;
      return work();
    });
    for (const one of [flight.join, flight.again, flight.join]) await one.call(flight).catch(() => undefined);
    expect([runs, flight.running]).toEqual([3, undefined]);
  });

  it('is shared by those who join it', async () => {
    const { ends, flight } = controlled();
    const all = [flight.join(), flight.join()];
    await Promise.resolve();
    ends[0]?.(1);
    expect([await Promise.all(all), ends.length]).toEqual([[1, 1], 1]);
  });

  it('runs once more for all who ask again after it began, and for nobody who asks before', async () => {
    const { ends, flight } = controlled();
    const all = [flight.again(), flight.again()];
    await Promise.resolve();
    all.push(flight.again(), flight.again());
    ends[0]?.(1);
    while (ends.length < 2) await new Promise(setImmediate);
    ends[1]?.(2);
    expect([await Promise.all(all), ends.length]).toEqual([[2, 2, 2, 2], 2]);
  });

  it('takes a call in the turn in which it ends', async () => {
    let wanted = 0;
    let done = 0;
    const flight: SingleFlight<void> = new SingleFlight(async () => {
      done = wanted;
    });
    for (; wanted < 50; ) {
      wanted += 1;
      const asked = flight.again();
      for (let turn = 0; turn < wanted % 7; turn += 1) await Promise.resolve();
      wanted += 1;
      await flight.again();
      await asked;
      expect(done).toBe(wanted);
    }
  });
});
