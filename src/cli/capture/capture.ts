import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { openReader } from '../../agent/agent.ts';
import { refreshOptions } from '../../agent/options.ts';
import { packCapture } from '../../capture/archive.ts';
import { CaptureLog } from '../../capture/capture-log.ts';
import type { Capture, CapturedRead } from '../../capture/format.ts';
import { redactCapture } from '../../capture/redaction/redact.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { ReadClock } from '../../host/recorded/read-clock.ts';
import { IsolatedReads } from '../../supervisor/isolated-reads.ts';
import { replayThreads } from '../../supervisor/probe-thread.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings, nodeName } from '../settings.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { readVersion } from '../version.ts';
import { archiveProblem, captureTarget } from './file.ts';
import { aboutCapture, placesOf } from './manifest.ts';

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
  const parts = { start: replayThreads(clock.memory, log.take), isolated: new IsolatedReads(systemClock), clock, observe: log.take };
  const reader = await openReader(settings, { logger, version }, { ...parts, isSteady: true });
  const startedMs = systemClock.monotonic();
  const read = async (): Promise<CapturedRead> => {
    const times = { atMs: Math.round(systemClock.monotonic() - startedMs), wallMs: systemClock.now() };
    clock.moveTo(times.wallMs, times.atMs);
    await reader.read();
    return log.read(times);
  };
  const first = await read();
  await pause(Math.max(0, startedMs + configuration.section('refresh', refreshOptions).interval - systemClock.monotonic()));
  await between();
  const reads = [first, await read()] as const;
  const capture = { ...aboutCapture(configuration, version), page: reader.page(), reads };
  return { capture, isStuck: !(await reader.close()) };
}

/** All names under which this machine may appear, also without their domains. */
const hostNames = (): readonly string[] => [...new Set([nodeName(), hostname()].flatMap((name) => [name, name.split('.')[0] ?? name]))];
