import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Assembler } from '../../agent/assemble.ts';
import { readFamilyFile } from '../../config/families/family-file.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { createHost, type Roots } from '../../host/host.ts';
import { pathOptions } from '../../host/options.ts';
import { createExposition } from '../../metrics/page/exposition.ts';
import type { Collection } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { visible } from '../../model/one-line.ts';
import { defaultValues } from '../../model/options.ts';
import type { ReadingList } from '../../model/readings.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { declarationSchema } from '../../probes/declared/declaration.ts';
import { type DeclaredFamily, familyOf } from '../../probes/declared/family.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { FamilyRunner } from '../../supervisor/family-runner.ts';
import { isPresent } from '../../supervisor/probe-look.ts';
import { ReaderPool } from '../../supervisor/reader-pool.ts';
import type { CommandContext, Ending } from '../context.ts';
import { textTable } from '../text-table.ts';

const TIMEOUT_MS = 10_000;
const CLOSE_MS = 1_000;

/** Checks one declaration and reads its devices once, in a reader with a deadline, like the agent. */
export async function checkFamily({ configuration, output, options }: CommandContext): Promise<Ending> {
  const file = String(options.file);
  // In the directory of declarations the system names such a file, so it is a link that leads nowhere. Here it is a path that somebody wrote.
  if (!existsSync(file)) throw new UserError('file-absent', { file });
  const declared = await readFamilyFile(file);
  const root = typeof options.root === 'string' ? resolve(options.root) : undefined;
  const roots: Roots = root === undefined ? configuration.section('path', pathOptions) : rootsBelow(root);
  const check = await lookOnce(root === undefined ? declared : captured(declared, root), roots);
  await output.write(options.output === 'json' ? checkJson(check) : checkText(check));
  const { reports, problems } = check.collection;
  return { status: reports.length > 0 && problems.length === 0 ? 0 : 1 };
}

/** A tree without a kernel log is read without one. */
const rootsBelow = (root: string): Roots => ({
  ...{ sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` },
  ...(existsSync(`${root}/dev/kmsg`) ? {} : { kmsg: '' }),
});

/** The same declaration with captured outputs instead of programs. */
function captured(declared: DeclaredFamily, root: string): DeclaredFamily {
  const { declaration } = declared;
  const commands = Object.entries(declaration.commands ?? {}).map(([name, command]) => [
    name,
    { ...command, captured: `${root}/commands/${name}.txt` },
  ]);
  return { ...declared, declaration: { ...declaration, commands: Object.fromEntries(commands) } };
}

async function lookOnce(declared: DeclaredFamily, roots: Roots): Promise<FamilyCheck> {
  const family = familyOf(declared);
  const readers = new ReaderPool(systemClock);
  const runner = new FamilyRunner(
    { family: family.name, declared, options: defaultValues(family.options), roots, timeoutMs: TIMEOUT_MS },
    { clock: systemClock, readers, events: { changed() {}, wake() {}, crashed() {} } },
  );
  await runner.refresh();
  const state = runner.state();
  const look = runner.latest();
  await readers.close(CLOSE_MS);
  const collection: Collection<ReadingList> = look?.collection ?? { reports: [], problems: [], listing: 'partial' };
  const assembler = new Assembler(
    { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: TIMEOUT_MS, missingRetentionMs: TIMEOUT_MS },
    () => new Map(),
  );
  const nothingHeld = { allocations: [], held: new Set<string>(), exclusive: [], podExclusive: [] };
  const inputs = {
    families: [{ state, ...defined({ latest: look }) }],
    podResources: { api: 'v1' as const, ...nothingHeld, answeredAtMs: systemClock.now() },
    checkpoint: [],
  };
  const snapshot: Snapshot = assembler.assemble(inputs, { nowMs: systemClock.now(), monotonicMs: systemClock.monotonic() });
  const exposition = createExposition({ families: [family], snapshot: () => snapshot, agent: () => NO_AGENT });
  const page = await exposition.devices();
  // A problem of the runner, such as a file that hangs, is in the state only.
  return {
    family,
    isPresent: isPresent(family, createHost(roots, systemClock)),
    collection: { ...collection, problems: state.problems },
    page,
  };
}

const NO_AGENT = { node: '', version: '', podResourcesRequests: [], podResourcesDurations: [] };

/** What a declaration gives now. */
interface FamilyCheck {
  readonly family: DeviceFamily;
  readonly isPresent: boolean;
  readonly collection: Collection<ReadingList>;
  /** Metrics of the devices, as the agent would export them. */
  readonly page: string;
}

/** What a declaration finds, for a terminal. */
function checkText({ family, collection, page }: FamilyCheck): string {
  const { reports, problems, listing } = collection;
  const parts = [
    `${family.name}: ${visible(family.summary)}\n${reports.length} ${reports.length === 1 ? 'device' : 'devices'}, list ${listing}\n`,
  ];
  for (const { device, read, outOfBand } of reports) {
    parts.push(`${visible(device.id)}\n${indented(factLines(device))}`);
    if (read === undefined) parts.push('  not read\n');
    else if (read.readings.length > 0) parts.push(`  Readings\n${indented(textTable([...read.readings].map(readingCells)), 4)}`);
    const findings = [...(read?.findings ?? []), ...(outOfBand?.findings ?? [])];
    if (findings.length > 0) parts.push(`  Conditions\n${indented(textTable(findings.map(findingCells)), 4)}`);
  }
  const given = new Set(reports.flatMap(({ read }) => [...(read?.readings ?? [])].map(({ metric }) => metric)));
  const silent = family.metrics.filter(({ name }) => !given.has(name));
  if (reports.length > 0 && silent.length > 0)
    parts.push(`Without a value now\n${indented(textTable(silent.map(({ name, source }) => [name, source])))}`);
  if (problems.length > 0)
    parts.push(`Problems\n${indented(textTable(problems.map(({ code, device = '-', message }) => [code, device, message])))}`);
  if (reports.length > 0) parts.push(`Exported\n${indented(seriesOf(page))}`);
  return parts.join('\n');
}

function checkJson({ family, isPresent, collection, page }: FamilyCheck): string {
  const devices = collection.reports.map(({ device, read, outOfBand }) => ({
    ...device,
    isRead: read !== undefined,
    readings: [...(read?.readings ?? [])].map(({ value, ...reading }) => ({
      ...reading,
      value: typeof value === 'bigint' ? String(value) : value,
    })),
    findings: [...(read?.findings ?? []), ...(outOfBand?.findings ?? [])],
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

function findingCells({ type, instance = '-', status, count, level, message, ifHeld }: Finding): string[] {
  const state =
    status === undefined
      ? count === undefined
        ? `level ${level}`
        : 'counter'
      : status === 'unknown'
        ? 'unknown'
        : status
          ? ifHeld === true
            ? 'holds while a container holds it'
            : 'holds'
          : 'does not hold';
  return [type, instance, state, message];
}

const indented = (text: string, by = 2): string =>
  `${text
    .trimEnd()
    .split('\n')
    .map((line) => ' '.repeat(by) + line)
    .join('\n')}\n`;

/** Prints all families, and whether the configuration enables them. */
export async function listFamilies({ families, configuration, output, options }: CommandContext): Promise<Ending> {
  const rows = families.map((family) => ({
    family: family.name,
    form: formOf(family),
    enabled: configuration.isOn(`probe.${family.name}`),
    summary: family.summary,
    ...defined({ proven: family.proven }),
  }));
  if (options.output === 'json') await output.write(`${JSON.stringify({ families: rows }, null, 2)}\n`);
  else {
    const lines = rows.map(({ family, form, enabled, summary }) => [family, form, enabled ? 'yes' : 'no', summary]);
    await output.write(textTable([['FAMILY', 'FORM', 'ENABLED', 'HARDWARE'], ...lines]));
  }
  return { status: 0 };
}

const formOf = ({ declared }: DeviceFamily): string => (declared === undefined ? 'code' : 'declared');

export async function printFamilySchema({ output }: CommandContext): Promise<Ending> {
  await output.write(`${JSON.stringify(declarationSchema, null, 2)}\n`);
  return { status: 0 };
}
