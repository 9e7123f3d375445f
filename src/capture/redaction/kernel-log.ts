import { parseKmsgRecord } from '../../host/kernel-log/record.ts';
import { parseSegfault } from '../../host/kernel-log/segfault.ts';
import type { Vocabulary } from '../../model/known-text.ts';
import type { Shapes } from './shapes.ts';

/** Numbers and flag of the header. A later field can name a task. */
const HEADER = /^(\d{1,10},\d{1,15},\d{1,15},[-c+])[^;]*;/;
/** Continuation lines that say which device a record is about. */
const SUBJECT = /^ (?:SUBSYSTEM=[a-z_-]{1,32}|DEVICE=(?:\+pci:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[bc]\d{1,5}:\d{1,8}|n\d{1,8}))$/;

/**
 * Redacts one record. A record that no parser of a family understands keeps only the numbers of its header: it can name users, hosts,
 * disks and addresses.
 */
export function redactRecord(
  record: string,
  families: readonly Vocabulary[],
  programName: (name: string) => string,
  shapes: Shapes,
): string {
  const head = HEADER.exec(record)?.[1];
  const parsed = parseKmsgRecord(record);
  if (head === undefined || parsed === undefined) return '';
  // A program can write any text to the log, too.
  const named = parsed.origin !== 'program' ? namedText(parsed, families, programName) : undefined;
  if (named === undefined) return `${head};-`;
  const subject = record.split('\n').filter((line) => SUBJECT.test(line));
  const kept = families.flatMap(({ kernelValues }) => kernelValues ?? []);
  return [`${head};${escaped(exceptValues(named, kept, (part) => shapes.redact(part, 'values')))}`, ...subject].join('\n');
}

/** Redacts the parts of a text that no pattern keeps. */
function exceptValues(text: string, [pattern, ...others]: readonly RegExp[], redact: (part: string) => string): string {
  if (pattern === undefined) return redact(text);
  const values = text.match(pattern) ?? [];
  const between = text.split(pattern).map((part) => exceptValues(part, others, redact));
  return between.map((part, at) => part + (values[at] ?? '')).join('');
}

/** The text with other names of programs; undefined when no parser understands it. */
function namedText(
  record: NonNullable<ReturnType<typeof parseKmsgRecord>>,
  families: readonly Vocabulary[],
  programName: (name: string) => string,
): string | undefined {
  const crash = parseSegfault(record);
  if (crash !== undefined) {
    const end = record.text.indexOf(`[${crash.pid}]: segfault at `);
    return programName(record.text.slice(0, end)) + record.text.slice(end);
  }
  const found = families.map(({ kernelPrograms }) => kernelPrograms?.(record)).filter((names) => names !== undefined);
  if (found.length === 0) return undefined;
  const names = found.flat().filter((name) => name !== '');
  // The longest name goes first, because one name can be a part of another.
  return names.sort((a, b) => b.length - a.length).reduce((text, name) => text.replaceAll(name, () => programName(name)), record.text);
}

/** As the kernel writes a text: one line of printable ASCII. */
const escaped = (text: string): string =>
  text.replaceAll(/[^ -~]|\\/g, (char) => [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join(''));
