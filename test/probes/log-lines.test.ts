import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseKmsgRecord } from '../../src/host/kernel-log/record.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { counterOf, type LogLine, logLineOf, meaningOf } from '../../src/probes/kit/log-row.ts';
import { NOTHING_LOGGED, withLine } from '../../src/probes/kit/log-rows.ts';
import { startFailed } from '../../src/probes/kit/pcie/bus-conditions.ts';
import { escaped } from '../support/forged-records.ts';

/** A line that somebody saw, or the form of a source with values. */
interface RealLine {
  /** Row that explains it; absent for a line that must mean nothing. */
  readonly row?: string;
  readonly line: string;
  /** `DEVICE=` of the record. Default: the PCI address that the line begins with. Empty: the record has none. */
  readonly device?: string;
  /** What it means, and the condition it raises (`+Type`) or ends (`-Type`), counts for (`*Type`), or the type of its fault (`!Type`). */
  readonly says: string;
  /** Where the line was seen. */
  readonly seen: string;
}

const families = await Promise.all(Object.values(familyLoaders).map((load) => (load as () => Promise<DeviceFamily>)()));
const withRows = families.filter(({ logRows = [] }) => logRows.length > 0);

const linesOf = (name: string): readonly RealLine[] => {
  const path = join('test/probes', name, 'log-lines.yaml');
  return existsSync(path) ? (parse(readFileSync(path, 'utf8')) as RealLine[]) : [];
};

const namedIn = (line: string): string => /^\S+ ([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)/.exec(line)?.[1] ?? '';

function recordOf(
  { line, device = namedIn(line) === '' ? '' : `+pci:${namedIn(line)}` }: RealLine,
  change: Partial<{ priority: number; device: string }> = {},
) {
  const about = change.device ?? device;
  const subsystem = /^\+([a-z_]+):/.exec(about)?.[1] ?? 'misc';
  const properties = about === '' ? '' : `\n SUBSYSTEM=${subsystem}\n DEVICE=${about}`;
  return parseKmsgRecord(`${change.priority ?? 3},5,1000,-;${escaped(line)}${properties}\n`) as NonNullable<
    ReturnType<typeof parseKmsgRecord>
  >;
}

function says(line: LogLine): string {
  const { raises, ends = [], repeats, fault } = line.row;
  const marks = [
    ...(raises === undefined ? [] : [`+${raises.condition.type}`]),
    ...ends.map(({ type }) => `-${type}`),
    ...(repeats === undefined ? [] : [`*${repeats.type}`]),
    ...(fault === undefined ? [] : [`!${fault.type}`]),
  ];
  return [meaningOf(line), ...marks].join(' ');
}

describe.each(withRows)('$name', ({ name, logRows: rows = [], conditions, metrics, problems, needs = [] }) => {
  const lines = linesOf(name);

  it('has a real line for each row', () => {
    expect([...new Set(lines.map(({ row }) => row ?? ''))].filter((row) => row !== '').sort()).toEqual(rows.map((row) => row.name).sort());
    for (const { seen } of lines) expect(seen).toBeTruthy();
  });

  it('declares what its rows report, and how each condition ends', () => {
    const declared = new Map(conditions.map((one) => [one.type, one]));
    const ended = new Set(rows.flatMap(({ ends = [] }) => ends.map(({ type }) => type)));
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
    for (const { raises, ends = [], repeats, source, ...row } of rows) {
      expect(source).toBeTruthy();
      for (const type of [raises?.condition.type, repeats?.type, ...ends.map((one) => one.type)].filter((one) => one !== undefined)) {
        expect(declared.get(type), `${row.name}: ${type}`).toMatchObject({ outOfBand: true });
      }
      // A driver that is bound ends a failed start: bus.test.ts.
      if (raises !== undefined && raises.condition.type !== startFailed.type) expect(ended, row.name).toContain(raises.condition.type);
      const counter = counterOf({ ...row, source, ...(repeats && { repeats }) });
      if (counter !== undefined) expect(metrics.map((metric) => metric.name)).toContain(counter.metric.name);
      if (row.withoutDevice === undefined) continue;
      const { fixed } = row.withoutDevice;
      if (fixed === undefined) expect(row.text.source, row.name).toMatch(/^\^(?:[^.*+?()[\]{}|\\]|\\.){16}/);
      else for (const { line } of lines.filter((one) => one.row === row.name)) expect(line.indexOf(fixed), line).toBeGreaterThan(15);
    }
    expect(problems.map(({ code }) => code)).toContain('kmsg-lost');
    expect(needs.map(({ check }) => check)).toContain('kernel-log');
  });

  it.each(lines)('$line', (real) => {
    const found = logLineOf(rows, recordOf(real));
    expect(found?.row.name).toBe(real.row);
    expect(found === undefined ? '' : says(found)).toBe(real.row === undefined ? '' : real.says);
    if (found === undefined) return;
    // A line without a raised or ended condition changes no finding.
    const { findings } = withLine(NOTHING_LOGGED, found);
    expect(findings.size).toBe((found.row.raises === undefined ? 0 : 1) + (found.row.ends?.length ?? 0));
    if (namedIn(real.line) !== '') expect(found.address).toBe(namedIn(real.line));
    const text = escaped(real.line);
    for (const forged of [
      recordOf(real, { priority: 11 }),
      parseKmsgRecord(
        `3,5,1000,-;${text.slice(0, 15)}[4711]: segfault at 0 ip 000055d0c1a01129 sp 00007ffc12345678 error 6 in ${text}[55d0c1a01000+1000]\n`,
      ),
      ...(found.row.withoutDevice === undefined ? [recordOf(real, { device: '' }), recordOf(real, { device: '+pci:0000:fe:1f.7' })] : []),
    ])
      expect(logLineOf(rows, forged as NonNullable<typeof forged>), 'forged').toBeUndefined();
  });
});
