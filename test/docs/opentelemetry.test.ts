import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { contract } from './named-series.ts';

const text = readFileSync('docs/opentelemetry.md', 'utf8');
const recipe = /```yaml\n(receivers:.*?)```/s.exec(text)?.[1] ?? '';

interface Collector {
  readonly processors: Readonly<Record<string, unknown>>;
  readonly service: { readonly pipelines: { readonly metrics: { readonly processors: readonly string[] } } };
}

/** Conventions that ask for a component of their own, or that the recipe leaves to the reader. */
const LEFT_OUT = ['hw.temperature.limit', 'hw.fan.speed_ratio', 'hw.fan.speed', 'hw.voltage', 'hw.gpu.io'];

describe('the recipe for a Collector', () => {
  it('uses the processors that it configures', () => {
    const collector = parse(recipe) as Collector;
    expect(Object.keys(collector.processors)).toEqual(collector.service.pipelines.metrics.processors);
  });

  it('renames to what the table says', () => {
    const renamed = [...recipe.matchAll(/set\(name, "(hw\.[\w.]+)"\)/g)].map(([, name]) => name as string);
    const rows = text.split('\n').filter((line) => /^\| .*\| `hw\./.test(line));
    const mapped = rows.flatMap((row) => [...(row.split('|')[2] ?? '').matchAll(/`(hw\.[\w.]+)`/g)].map(([, name]) => name as string));
    const expected = mapped.filter((name) => !LEFT_OUT.includes(name) && name !== 'hw.id');
    expect([...new Set(renamed)].toSorted()).toEqual([...new Set(expected)].toSorted());
  });

  it('reads labels that the series have', () => {
    const statements = recipe.split('\n').filter((line) => line.includes('metric.name == "device_'));
    expect(statements.length).toBeGreaterThan(5);
    for (const line of statements) {
      const [, metric = ''] = /metric\.name == "(\w+)"/.exec(line) ?? [];
      for (const [, label] of line.matchAll(/attributes\["(engine|sensor|state|kind|xid|port)"\]/g))
        expect(contract.get(metric), line).toContain(label);
    }
  });

  it('copies a label only where it is there', () => {
    const copies = [...recipe.matchAll(/set\(attributes\["[\w.]+"\], attributes\["(\w+)"\]\)(.*)/g)];
    expect(copies.length).toBeGreaterThan(5);
    for (const [statement, label, rest] of copies) expect(rest, statement).toContain(`attributes["${label}"] != nil`);
  });
});
