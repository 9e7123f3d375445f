import { readFile } from 'node:fs/promises';
import { type OwnReader, openReader } from '../../agent/agent.ts';
import type { Capture } from '../../capture/frame.ts';
import { loadConfiguration } from '../../config/configuration.ts';
import { systemWords, UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { FrameClock } from '../../host/recorded/frame-clock.ts';
import { ReplayNode } from '../../sim/replay/replay-node.ts';
import { IsolatedReads } from '../../supervisor/isolated-reads.ts';
import { framedThreads } from '../../supervisor/probe-thread.ts';
import { captureFault, readCapture } from '../capture/file.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings } from '../settings.ts';
import { readVersion } from '../version.ts';
import { capturedPage } from './captured-page.ts';
import { replayFlags } from './flags.ts';

/** Plays a capture as fast as it can be read, and compares what the agent makes of it. Status 1: a page differs. */
export async function runReplay(context: CommandContext): Promise<Ending> {
  const { output, options } = context;
  const file = options.file;
  if (typeof file !== 'string') throw new UserError('usage-invalid', { problem: 'a capture is missing', command: 'device-agent replay' });
  const capture = await readCapture(file);
  const expected = typeof options.expect === 'string' ? await expectedPage(options.expect) : undefined;
  const { pages, isStuck } = await playCapture(context, capture).catch((error: unknown) => {
    throw captureFault(file, error);
  });
  const last = pages.at(-1) ?? '';
  const differences =
    expected === undefined
      ? capture.frames.flatMap(({ page }, index) => pageDifference(page, pages[index] ?? '').map((line) => `frame ${index}: ${line}\n`))
      : pageDifference(expected, last).map((line) => `${line}\n`);
  if (options.output === 'prom') await output.writePage(last);
  else await output.write(differences.length > 0 ? differences.join('') : `${pages.length} frames, no difference\n`);
  return { status: differences.length > 0 ? 1 : 0, isStuck };
}

type ReplayContext = Pick<CommandContext, 'registry' | 'families' | 'logger' | 'flags'>;

/** Plays all frames, and returns the page after each one. The clock moves from frame to frame, so that a capture of hours takes seconds. */
export async function playCapture(
  context: ReplayContext,
  capture: Capture,
): Promise<{ readonly pages: readonly string[]; readonly isStuck: boolean }> {
  const node = new ReplayNode(capture, context.families);
  try {
    const clock = new FrameClock();
    const reader = await openReplay(context, node, clock, capture.manifest.node);
    const pages: string[] = [];
    for (const { wallMs, atMs } of capture.frames) {
      await node.step();
      clock.moveTo(wallMs, atMs);
      await reader.read();
      pages.push(capturedPage(await reader.metrics()));
    }
    node.release();
    return { pages, isStuck: !(await reader.close()) };
  } finally {
    node.stop();
  }
}

/** The settings of the capture, and none of this machine: the same archive gives the same page everywhere. */
async function openReplay(
  { registry, families, logger, flags }: ReplayContext,
  replayed: ReplayNode,
  frames: FrameClock,
  node: string,
): Promise<OwnReader> {
  const { configuration } = await loadConfiguration(registry, {}, replayFlags(registry, replayed, flags));
  const parts = { start: framedThreads(frames.memory), isolated: new IsolatedReads(systemClock), frames };
  return await openReader({ ...agentSettings(configuration, families), node }, { logger, version: readVersion().version }, parts);
}

async function expectedPage(path: string): Promise<string> {
  try {
    return capturedPage(await readFile(path, 'utf8'));
  } catch (error) {
    throw new UserError('usage-invalid', { problem: `${path} cannot be read: ${systemWords(error)}`, command: 'device-agent replay' });
  }
}

const MOST_LINES = 200;

/** Series of a page without comments, sorted. */
export function seriesOf(page: string): readonly string[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .sort();
}

/** Lines that differ, `-` expected and `+` found; empty when the pages are equal. Comments do not count. */
export function pageDifference(expected: string, found: string): readonly string[] {
  const [before, after] = [seriesOf(expected), seriesOf(found)];
  const [inBefore, inAfter] = [new Set(before), new Set(after)];
  const lines = [
    ...before.filter((line) => !inAfter.has(line)).map((line) => `-${line}`),
    ...after.filter((line) => !inBefore.has(line)).map((line) => `+${line}`),
  ];
  lines.sort((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1));
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), `… ${lines.length - MOST_LINES} more lines`];
}
