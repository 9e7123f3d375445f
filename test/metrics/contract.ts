/** One line of a contract: `name type label,label`. The labels can be absent. */
export interface PromisedMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

export function contractOf(text: string): ReadonlyMap<string, PromisedMetric> {
  return new Map(
    text
      .trim()
      .split('\n')
      .map((line) => {
        const [name = '', type = '', labels = ''] = line.split(' ');
        return [name, { name, type, labels: labels.split(',').filter((label) => label !== '') }];
      }),
  );
}

export const contractLine = ({ name, type, labels }: PromisedMetric): string =>
  [name, type, labels.toSorted().join(',')].filter((word) => word !== '').join(' ');
