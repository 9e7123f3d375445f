import type { Labels } from '../model/metric.ts';

/** Words of 0 and 1, by the end of the names of readings that are states and no amounts. */
const WORDS: readonly (readonly [names: RegExp, zero: string, one: string])[] = [
  [/_up$/, 'down', 'up'],
  [/_enabled$/, 'off', 'on'],
  [/_asleep$/, 'awake', 'asleep'],
  [
    /_(?:throttled|trusted|licensed|pending|failure|unrepairable|threshold_exceeded|read_only|spoof_check|peer_access|fabric_fault|critical_warning)$/,
    'no',
    'yes',
  ],
];
const NAMED = /_(?:state|health|action|priority)$/;
/** A label that names the state: there is a series for the state that holds, and none for the others. */
const LABELS: readonly string[] = ['state', 'action', 'priority'];

/** Whether the values of a metric are states and no amounts. */
export const isState = (metric: string): boolean => NAMED.test(metric) || WORDS.some(([names]) => names.test(metric));

/** The labels that say what is in the state. */
export const subjectOf = (metric: string, labels: Labels): Labels =>
  NAMED.test(metric) ? Object.fromEntries(Object.entries(labels).filter(([name]) => !LABELS.includes(name))) : labels;

/** The word of a value; undefined where the value says only that another state holds. */
export function stateWord(metric: string, labels: Labels, value: number): string | undefined {
  const [, zero, one] = WORDS.find(([names]) => names.test(metric)) ?? [];
  if (zero !== undefined) return value === 0 ? zero : one;
  const name = LABELS.find((label) => labels[label] !== undefined);
  // A state without a name has a number, as the tools of its vendor write it.
  return name === undefined ? `P${value}` : value === 0 ? undefined : labels[name]?.replaceAll('_', ' ');
}

/** The usual state, where there is one. */
export const usualWord = (metric: string): string | undefined => stateWord(metric, { state: '' }, metric.endsWith('_up') ? 1 : 0);
