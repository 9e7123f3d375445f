import { refreshOptions } from '../../agent/options.ts';
import { frameBytes, packCapture } from '../../capture/archive.ts';
import { ARCHIVE_LIMITS } from '../../capture/untar.ts';
import { UserError } from '../../errors.ts';
import { parseDuration } from '../../model/duration.ts';
import type { CommandContext, Ending } from '../context.ts';
import { stopSignal } from '../signals.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { captureTarget } from './file.ts';
import { CaptureSession } from './session.ts';

const DEFAULT_FILE = 'device-agent-capture.tar.gz';
/** Without --for there are two frames, because a counter is informative only by its growth. */
const LEAST_FRAMES = 2;
/** The names of the files need space, too. */
const MOST_BYTES = ARCHIVE_LIMITS.mostBytes * 0.9;

/** Reads the node as the agent does, and writes all that was read as one archive. */
export async function runCapture(context: CommandContext): Promise<Ending> {
  const { output, options } = context;
  const target = captureTarget(typeof options.output === 'string' ? options.output : DEFAULT_FILE);
  const forMs = durationOf(options.for);
  warnOfSysfs(context);
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const session = await CaptureSession.open(context);
  const frames = await readFrames(context, session, forMs, stop.signal);
  const { isStuck } = await session.close();
  const isRedacted = options.redact !== false;
  await target.write(packCapture(session.capture(isRedacted)));
  await target.report(`${frames} frames, ${isRedacted ? 'names replaced' : 'with all names'}`, output);
  return { status: 0, isStuck };
}

/** Returns the number of frames. The first one is always complete, even when the signal comes earlier. */
async function readFrames(
  { configuration, logger }: CommandContext,
  session: CaptureSession,
  forMs: number,
  stop: AbortSignal,
): Promise<number> {
  const { interval } = configuration.section('refresh', refreshOptions);
  for (let frames = 0, bytes = 0; ; ) {
    const startedMs = session.elapsedMs;
    const frame = await session.read();
    bytes += frameBytes(frame);
    if (frames > 0 && bytes > MOST_BYTES) {
      logger.warn('the capture ends early, because it would be too large', { frames, limitBytes: ARCHIVE_LIMITS.mostBytes });
      return frames;
    }
    session.keep(frame);
    frames += 1;
    const isDone = frames >= LEAST_FRAMES && startedMs + interval > forMs;
    showProgress(`\r${frames} frames, ${Math.ceil(bytes / 1_024)} KiB, ${Math.round(session.elapsedMs / 1_000)} s `);
    if (!isDone) await pause(startedMs + interval - session.elapsedMs, stop);
    if (isDone || stop.aborted) {
      showProgress('\n');
      return frames;
    }
  }
}

function durationOf(text: unknown): number {
  if (text === undefined) return 0;
  const ms = parseDuration(String(text));
  if (ms === undefined) throw new UserError('flag-invalid', { flag: '--for', problem: 'must be a duration such as 30s or 10m' });
  return ms;
}

/** Progress is for a person: it goes to the terminal, and never into a file. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(text);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, ms));
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
