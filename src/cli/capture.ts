import { hostname } from 'node:os';
import { openSession } from '../agent/agent.ts';
import { frameBytes, packCapture } from '../capture/archive.ts';
import { CaptureLog } from '../capture/capture-log.ts';
import type { Frame } from '../capture/frame.ts';
import { redactCapture } from '../capture/redaction/redact.ts';
import { ARCHIVE_LIMITS } from '../capture/untar.ts';
import { UserError } from '../errors.ts';
import { systemClock } from '../host/clock.ts';
import { parseDuration } from '../model/duration.ts';
import { IsolatedReads } from '../supervisor/isolated-reads.ts';
import { observedThreads } from '../supervisor/probe-thread.ts';
import { writeCapture } from './capture-file.ts';
import { manifestOf, placesOf } from './capture-manifest.ts';
import type { CommandContext, Ending } from './context.ts';
import { agentSettings, nodeName } from './settings.ts';
import { stopSignal } from './signals.ts';
import { warnOfSysfs } from './sysfs-warning.ts';
import { readVersion } from './version.ts';

const DEFAULT_FILE = 'device-agent-capture.tar.gz';
/** Without --for there are two frames: a counter tells something only by its growth. */
const LEAST_FRAMES = 2;
/** The end of the archive needs space, too. */
const MOST_BYTES = ARCHIVE_LIMITS.mostBytes * 0.9;

/** Reads the machine as the agent does, and keeps all that was read in one archive. */
export async function runCapture(context: CommandContext): Promise<Ending> {
  const { configuration, families, logger, output, options } = context;
  const file = typeof options.output === 'string' ? options.output : DEFAULT_FILE;
  const forMs = durationOf(options.for);
  const { podsApi: _, ...settings } = agentSettings(configuration, families);
  warnOfSysfs(context);
  const { version } = readVersion();
  const log = new CaptureLog(placesOf(configuration));
  const parts = { start: observedThreads(log.take), isolated: new IsolatedReads(systemClock), observe: log.take };
  const session = await openSession(settings, { logger, version }, parts);
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const frames: Frame[] = [];
  const startedMs = systemClock.monotonic();
  for (let bytes = 0; ; ) {
    const [atMs, wallMs] = [systemClock.monotonic() - startedMs, systemClock.now()];
    const { page } = await session.readSettled();
    const frame = log.cut({ atMs, wallMs, page });
    bytes += frameBytes(frame);
    if (bytes > MOST_BYTES) {
      logger.warn('the capture ends early, because it would be too large', { frames: frames.length, limitBytes: ARCHIVE_LIMITS.mostBytes });
      break;
    }
    frames.push(frame);
    tell(`\r${frames.length} frames, ${Math.ceil(bytes / 1_024)} KiB, ${Math.round((systemClock.monotonic() - startedMs) / 1_000)} s `);
    const isDone = frames.length >= LEAST_FRAMES && atMs + settings.refresh.interval > forMs;
    if (isDone || stop.signal.aborted) break;
    await pause(settings.refresh.interval - (systemClock.monotonic() - startedMs - atMs), stop.signal);
    if (stop.signal.aborted) break;
  }
  tell('\n');
  const ended = await session.close();
  const capture = { manifest: { ...manifestOf(configuration, version), frames: frames.length }, frames };
  await writeCapture(file, packCapture(options.redact === false ? capture : redactCapture(capture, hostNames())));
  await output.write(`${file}: ${frames.length} frames, ${options.redact === false ? 'with all names' : 'names replaced'}\n`);
  return { status: 0, isStuck: !ended };
}

/** All names under which this machine may appear, the longest first, without their domains too. */
const hostNames = (): readonly string[] => [...new Set([nodeName(), hostname()].flatMap((name) => [name, name.split('.')[0] ?? name]))];

function durationOf(text: unknown): number {
  if (text === undefined) return 0;
  const ms = parseDuration(String(text));
  if (ms === undefined) throw new UserError('flag-invalid', { flag: '--for', problem: 'must be a duration such as 30s or 10m' });
  return ms;
}

/** Progress is for a person: it goes to the terminal, and never into a file. */
function tell(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(text);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, ms));
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
