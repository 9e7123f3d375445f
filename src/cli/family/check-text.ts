import type { Collection } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { visible } from '../../model/one-line.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { textTable } from '../text-table.ts';

/** What a declaration gives now. */
export interface FamilyCheck {
  readonly family: DeviceFamily;
  readonly isPresent: boolean;
  readonly collection: Collection;
  /** Metrics of the devices, as the agent would export them. */
  readonly page: string;
}

/** What a declaration finds, for a terminal. */
export function checkText({ family, collection, page }: FamilyCheck): string {
  const { reports, problems, listing } = collection;
  const parts = [
    `${family.name}: ${visible(family.summary)}\n${reports.length} ${reports.length === 1 ? 'device' : 'devices'}, list ${listing}\n`,
  ];
  for (const { device, read } of reports) {
    parts.push(`${visible(device.id)}\n${indented(factLines(device))}`);
    if (read === undefined) parts.push('  not read\n');
    else if (read.readings.length > 0) parts.push(`  Readings\n${indented(textTable(read.readings.map(readingCells)), 4)}`);
    if (read !== undefined && read.findings.length > 0)
      parts.push(`  Conditions\n${indented(textTable(read.findings.map(findingCells)), 4)}`);
  }
  const given = new Set(reports.flatMap(({ read }) => (read?.readings ?? []).map(({ metric }) => metric)));
  const silent = family.metrics.filter(({ name }) => !given.has(name));
  if (reports.length > 0 && silent.length > 0)
    parts.push(`Without a value now\n${indented(textTable(silent.map(({ name, source }) => [name, source])))}`);
  if (problems.length > 0)
    parts.push(`Problems\n${indented(textTable(problems.map(({ code, device = '-', message }) => [code, device, message])))}`);
  if (reports.length > 0) parts.push(`Exported\n${indented(seriesOf(page))}`);
  return parts.join('\n');
}

export function checkJson({ family, isPresent, collection, page }: FamilyCheck): string {
  const devices = collection.reports.map(({ device, read }) => ({
    ...device,
    isRead: read !== undefined,
    readings: (read?.readings ?? []).map(({ value, ...reading }) => ({
      ...reading,
      value: typeof value === 'bigint' ? String(value) : value,
    })),
    findings: read?.findings ?? [],
  }));
  const { listing, problems } = collection;
  return `${JSON.stringify({ family: family.name, isPresent, listing, devices, problems, metrics: seriesOf(page).split('\n') }, null, 2)}\n`;
}

/** Lines of the page that are no comment and no verdict, because one collection without memory has none. */
function seriesOf(page: string): string {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !/^device_(?:health|present|last_read)/.test(line))
    .join('\n');
}

function factLines(device: Device): string {
  const facts = Object.entries(device).filter(([name]) => name !== 'family' && name !== 'id');
  return textTable(facts.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') || '-' : String(value)]));
}

function readingCells({ metric, labels = {}, value }: Reading): string[] {
  const pairs = Object.entries(labels).map(([name, text]) => `${name}=${JSON.stringify(text)}`);
  return [metric, pairs.join(' ') || '-', String(value)];
}

function findingCells({ type, instance = '-', status, count, level, message }: Finding): string[] {
  const state =
    status === undefined
      ? count === undefined
        ? `level ${level}`
        : 'counter'
      : status === 'unknown'
        ? 'unknown'
        : status
          ? 'holds'
          : 'does not hold';
  return [type, instance, state, message];
}

const indented = (text: string, by = 2): string =>
  `${text
    .trimEnd()
    .split('\n')
    .map((line) => ' '.repeat(by) + line)
    .join('\n')}\n`;
