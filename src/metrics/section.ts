import type { Value } from '../model/metric.ts';
import type { Declared } from './declared.ts';
import type { LabelText } from './labels.ts';

/** Why a series was left out of a page. Closed set: value of the label `reason`. */
export const DROP_REASONS = ['duplicate', 'undeclared', 'invalid-value'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Which series there are, in the order in which they were added. */
export interface SeriesList {
  readonly declared: readonly Declared[];
  readonly labels: readonly LabelText[];
  /** Further labels of each series. */
  readonly own: readonly LabelText[];
}

/**
 * Series that come together, as those of one device, and the value of each. Nothing of it is ever changed. From one page to the next most
 * sections have the same list, by which it is told that only values may differ.
 */
export interface Section {
  readonly list: SeriesList;
  /** Of the series at the same place. */
  readonly values: readonly Value[];
  /** What is not in the list. */
  readonly dropped: ReadonlyMap<DropReason, number>;
}

/** The section with other values; undefined when one of them cannot be exported. */
export function withValues(section: Section, values: readonly Value[]): Section | undefined {
  const { list, dropped } = section;
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at] as Value;
    if (value !== section.values[at] && !isExportable((list.declared[at] as Declared).type, value)) return undefined;
  }
  return { list, values, dropped };
}

export function isExportable(type: Declared['type'], value: Value): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}

/** True for the same series in the same order. */
export function areSameLists(a: SeriesList, b: SeriesList): boolean {
  if (a === b) return true;
  if (a.declared.length !== b.declared.length) return false;
  for (let at = 0; at < a.declared.length; at += 1) {
    if (a.declared[at] !== b.declared[at] || a.own[at] !== b.own[at] || a.labels[at] !== b.labels[at]) return false;
  }
  return true;
}

/** What was left out of all of them, by reason. */
export function droppedOf(sections: readonly Section[], duplicates: number): ReadonlyMap<DropReason, number> {
  const sums = new Map<DropReason, number>();
  for (const { dropped } of sections) for (const [reason, count] of dropped) sums.set(reason, (sums.get(reason) ?? 0) + count);
  if (duplicates > 0) sums.set('duplicate', duplicates);
  return sums;
}
