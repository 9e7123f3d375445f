import { expect, it } from 'vitest';
import { durationText, exactDurationText } from '../../src/model/duration.ts';

it.each([
  [0, '0 s', '0 s'],
  [250, '0.25 s', '250 ms'],
  [59_000, '59 s', '59 s'],
  [90_000, '1 min', '1 min 30 s'],
  [3_600_000, '1 h', '1 h'],
  [11_520_000, '3 h 12 min', '3 h 12 min'],
  [86_400_000, '1 d', '1 d'],
  [187_200_000, '2 d 4 h', '2 d 4 h'],
])('%i ms is %s as an age, and %s as a limit', (ms, age, limit) => {
  expect([durationText(ms), exactDurationText(ms)]).toEqual([age, limit]);
});
