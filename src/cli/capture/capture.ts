import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { openAgent } from '../../agent/agent.ts';
import { refreshOptions } from '../../agent/options.ts';
import { packCapture } from '../../capture/archive.ts';
import type { CapturedPlace } from '../../capture/capture-log.ts';
import { CaptureLog } from '../../capture/capture-log.ts';
import type { CapturedRead } from '../../capture/format.ts';
import { type Capture, DIRECTORY_OPTION, FORMAT, KERNEL_LOG, KERNEL_LOG_OPTION } from '../../capture/format.ts';
import { redactCapture } from '../../capture/redaction/redact.ts';
import type { Configuration } from '../../config/configuration.ts';
import type { OptionEntry } from '../../config/registry.ts';
import { toText } from '../../config/values.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { ReadClock } from '../../host/recorded/read-clock.ts';
import { replayReaders } from '../../supervisor/reader-process.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings, nodeName } from '../settings.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { readVersion } from '../version.ts';
import { archiveProblem, captureTarget } from './file.ts';

const DEFAULT_FILE = 'device-agent-capture.json.gz';

/** Reads the node twice as the agent does, and writes all that was read as one archive. */
export async function runCapture(context: CommandContext): Promise<Ending> {
  const { output, options, families } = context;
  const file = typeof options.output === 'string' ? options.output : DEFAULT_FILE;
  const target = captureTarget(file);
  warnOfSysfs(context);
  const { capture, isStuck } = await captureNode(context);
  const isRedacted = options.redact !== false;
  const known = families.flatMap((family) => family.known ?? []);
  try {
    await target.write(packCapture(isRedacted ? redactCapture(capture, hostNames(), known) : capture));
  } catch (error) {
    const problem = archiveProblem(error);
    throw problem === undefined ? error : new UserError('capture-unwritable', { file, problem }, error);
  }
  await target.report(isRedacted ? 'two reads, names replaced' : 'two reads, with all names', output);
  return { status: 0, isStuck };
}

/** Reads everything twice, one interval apart. `between` runs before the second read. `isStuck`: a thread cannot end. */
export async function captureNode(
  { configuration, families, logger }: Pick<CommandContext, 'configuration' | 'families' | 'logger'>,
  between: () => unknown = () => {},
): Promise<{ readonly capture: Capture; readonly isStuck: boolean }> {
  const { version } = readVersion();
  // The answers of the Pods API have the environment of all pods, so they are not asked for.
  const { podsApi: _, ...settings } = agentSettings(configuration, families);
  const log = new CaptureLog(placesOf(configuration));
  const clock = new ReadClock();
  const parts = { start: replayReaders(() => clock.time, log.take), clock, observe: log.take };
  const agent = await openAgent(settings, { logger, version }, { ...parts, isSteady: true });
  const startedMs = systemClock.monotonic();
  const read = async (): Promise<CapturedRead> => {
    const times = { atMs: Math.round(systemClock.monotonic() - startedMs), wallMs: systemClock.now() };
    clock.moveTo(times.wallMs, times.atMs);
    await agent.read();
    return log.read(times);
  };
  const first = await read();
  await pause(Math.max(0, startedMs + configuration.section('refresh', refreshOptions).interval - systemClock.monotonic()));
  await between();
  const reads = [first, await read()] as const;
  const capture = { ...aboutCapture(configuration, version), page: agent.page(), reads };
  return { capture, isStuck: !(await agent.close()) };
}

/** All names under which this machine may appear, also without their domains. */
const hostNames = (): readonly string[] => [...new Set([nodeName(), hostname()].flatMap((name) => [name, name.split('.')[0] ?? name]))];

/** Sections that decide what a probe reads and how it is joined, judged, counted and named. All others concern the machine of the agent. */
const SECTIONS = /^(?:probe\.[^.]+|device|labels|podresources|dra|cdi|usage|incidents)$/;
const isKept = ({ key, section }: OptionEntry): boolean => SECTIONS.test(section.path) || /^refresh\.(?!timeout$)/.test(key);

/** Options that a replay needs although they have their defaults: it has other programs and other directories. */
const NEEDED = /^cdi\.dirs$|^probe\..*-path$/;

/** What a capture says of the agent that made it. */
function aboutCapture(configuration: Configuration, agentVersion: string): Omit<Capture, 'page' | 'reads'> {
  const options = configuration.settings
    .filter(({ entry, origin }) => isKept(entry) && (origin.from !== 'default' || NEEDED.test(entry.key)))
    .map(({ entry, value }) => [entry.key, toText(entry.spec, value)] as const);
  const parts = configuration.structured
    .filter(({ origin }) => origin.from !== 'default')
    .map(({ part, value }) => [part.path, part.path === 'plugin.resources' ? withoutAllocation(value) : value] as const);
  return {
    format: FORMAT,
    agentVersion,
    node: nodeName(),
    isRedacted: false,
    options: Object.fromEntries(options),
    parts: Object.fromEntries(parts),
  };
}

/** A capture leaves out what containers get: a replay does not need it, and its variables can hold passwords. */
const withoutAllocation = (resources: unknown): unknown =>
  (resources as readonly Readonly<Record<string, unknown>>[]).map(({ allocation: _, ...resource }) => resource);

/** Directories and files of which a capture keeps what is read. */
function placesOf(configuration: Configuration): readonly CapturedPlace[] {
  const text = (key: string): string => String(configuration.setting(key).value).replace(/\/+$/, '');
  const log = text(KERNEL_LOG_OPTION);
  const directories = configuration.settings.filter(({ entry }) => DIRECTORY_OPTION.test(entry.key));
  const cdi = configuration.setting('cdi.dirs').value as readonly string[];
  return [
    { name: 'sys', path: text('path.sysfs') },
    { name: 'proc', path: text('path.procfs') },
    { name: 'dev', path: text('path.dev') },
    { name: 'share', path: text('path.share') },
    { name: 'kubelet/checkpoint', path: text('podresources.checkpoint') },
    { name: 'claims', path: text('dra.metadata-dir') },
    { name: KERNEL_LOG, path: log.startsWith('/') ? log : '' },
    ...directories.map(({ entry }): CapturedPlace => ({ name: `directory/${entry.key}`, path: text(entry.key) })),
    ...cdi.map((path, index): CapturedPlace => ({ name: `cdi${index}`, path })),
  ];
}
