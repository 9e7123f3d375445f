import type { ChangelogVersion, Section } from '../support/changelog.ts';
import { isOver } from '../support/deprecations.ts';

/** One line of a contract: `name type label,label deprecated=0.2`. The labels and the mark can be absent. */
export interface PromisedMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  /** Minor version that marked it as deprecated. */
  readonly deprecated?: string;
}

const MARK = 'deprecated=';

export function contractOf(text: string): ReadonlyMap<string, PromisedMetric> {
  return new Map(
    text
      .trim()
      .split('\n')
      .map((line) => {
        const words = line.split(' ');
        const [name = '', type = '', labels = ''] = words.filter((word) => !word.startsWith(MARK));
        const mark = words.find((word) => word.startsWith(MARK))?.slice(MARK.length);
        return [
          name,
          { name, type, labels: labels.split(',').filter((label) => label !== ''), ...(mark === undefined ? {} : { deprecated: mark }) },
        ];
      }),
  );
}

export function contractLine({ name, type, labels, deprecated }: PromisedMetric): string {
  const mark = deprecated === undefined ? [] : [`${MARK}${deprecated}`];
  return [name, type, labels.toSorted().join(','), ...mark].filter((word) => word !== '').join(' ');
}

interface Change {
  readonly name: string;
  readonly what: string;
  /** Sections of the changelog that can tell it; all of them when absent. */
  readonly sections?: readonly Section[];
}

/** What differs between two contracts. A further label breaks joins and sums, except that of an `_info` metric. */
function changes(before: ReadonlyMap<string, PromisedMetric>, after: ReadonlyMap<string, PromisedMetric>): readonly Change[] {
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((name): Change[] => {
    const [was, is] = [before.get(name), after.get(name)];
    if (was === undefined) return [{ name, what: 'is new' }];
    if (is === undefined) return [{ name, what: 'is gone', sections: ['Removed'] }];
    const gone = was.labels.filter((label) => !is.labels.includes(label));
    const added = is.labels.filter((label) => !was.labels.includes(label));
    const breaks = gone.length > 0 || (added.length > 0 && !name.endsWith('_info'));
    return [
      ...(was.type === is.type ? [] : [{ name, what: `is a ${is.type}`, sections: ['Changed'] } as const]),
      ...(gone.length + added.length === 0
        ? []
        : [{ name, what: `has the labels ${is.labels.join(',')}`, ...(breaks ? ({ sections: ['Changed'] } as const) : {}) }]),
      ...(was.deprecated === is.deprecated
        ? []
        : [{ name, what: 'is marked otherwise', ...(is.deprecated === undefined ? {} : ({ sections: ['Deprecated'] } as const)) }]),
    ];
  });
}

/** What a changelog does not say, or what goes too early. `released`: names of released versions; `working`: what the program calls itself. */
export function contractProblems(
  before: ReadonlyMap<string, PromisedMetric>,
  after: ReadonlyMap<string, PromisedMetric>,
  unreleased: ChangelogVersion | undefined,
  { released, working }: { readonly released: readonly string[]; readonly working: string },
): readonly string[] {
  return changes(before, after).flatMap(({ name, what, sections }) => {
    const told = [...(unreleased?.sections ?? [])].some(
      ([section, lines]) =>
        (sections === undefined || (sections as readonly string[]).includes(section)) &&
        lines.some((line) => line.includes(`\`${name}\``) || line.includes(`\`${name}{`)),
    );
    const mark = before.get(name)?.deprecated;
    const isEarly = !after.has(name) && (mark === undefined || !isOver(mark, released, working));
    return [
      ...(told ? [] : [`${name} ${what}: no line of CHANGELOG.md has it in backquotes below ${(sections ?? ['Unreleased']).join(' or ')}`]),
      ...(isEarly
        ? [`${name} is gone: ${mark === undefined ? 'it was not marked as deprecated before' : `it was marked only in ${mark}`}`]
        : []),
    ];
  });
}
