import { readFile } from 'node:fs/promises';
import { openAgent } from '../../agent/agent.ts';
import type { Capture } from '../../capture/format.ts';
import { loadConfiguration } from '../../config/configuration.ts';
import { systemWords, UserError } from '../../errors.ts';
import { ReadClock } from '../../host/recorded/read-clock.ts';
import { replayReaders } from '../../supervisor/reader-process.ts';
import { captureFault, readCapture } from '../capture/file.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings } from '../settings.ts';
import { readVersion } from '../version.ts';
import { ReplayedNode } from './node.ts';

/** Reads a captured node twice, as the captured agent did, and compares what the agent makes of it. Status 1: a value differs. */
export async function runReplay(context: CommandContext): Promise<Ending> {
  const { output, options } = context;
  const file = options.file;
  if (typeof file !== 'string') throw new UserError('usage-invalid', { problem: 'a capture is missing', command: 'device-agent replay' });
  const capture = await readCapture(file);
  const expected = typeof options.expect === 'string' ? await expectedPage(options.expect) : capture.page;
  const { page, isStuck } = await playCapture(context, capture).catch((error: unknown) => {
    throw captureFault(file, error);
  });
  const differences = pageDifference(expected, page);
  if (options.output === 'prom') await output.writePage(page);
  else await output.write(differences.length > 0 ? differences.map((line) => `${line}\n`).join('') : 'no difference\n');
  return { status: differences.length > 0 ? 1 : 0, isStuck };
}

/** Plays both reads, and returns the page after the second one. The settings are those of the capture, and none of this machine. */
export async function playCapture(
  { registry, families, logger, flags }: Pick<CommandContext, 'registry' | 'families' | 'logger' | 'flags'>,
  capture: Capture,
): Promise<{ readonly page: string; readonly isStuck: boolean }> {
  const node = new ReplayedNode(capture, families);
  try {
    const { configuration } = await loadConfiguration(registry, {}, node.flags(registry, flags));
    const settings = agentSettings(configuration, families);
    const clock = new ReadClock();
    const agent = await openAgent(
      { ...settings, node: capture.node, roots: { ...settings.roots, isReplay: true } },
      { logger, version: readVersion().version },
      { start: replayReaders(() => clock.time), clock, isSteady: true },
    );
    for (const at of [0, 1] as const) {
      await node.show(at);
      clock.moveTo(capture.reads[at].wallMs, capture.reads[at].atMs);
      await agent.read();
    }
    node.endReads();
    return { page: agent.page(), isStuck: !(await agent.close()) };
  } finally {
    node.stop();
  }
}

async function expectedPage(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UserError('usage-invalid', { problem: `${path} cannot be read: ${systemWords(error)}`, command: 'device-agent replay' });
  }
}

const MOST_LINES = 200;
/** Times of the agent: a replay reads at other times within a second. */
const TIMES = /^\w+_timestamp_seconds(?=[{ ])/;

/** Series of a page without comments, sorted. */
export const seriesLines = (page: string): readonly string[] =>
  page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !TIMES.test(line))
    .sort();

/** Lines that differ, `-` expected and `+` found; empty when the pages are equal. Comments and times do not count. */
export function pageDifference(expected: string, found: string): readonly string[] {
  const [before, after] = [seriesLines(expected), seriesLines(found)];
  const [inBefore, inAfter] = [new Set(before), new Set(after)];
  const lines = [
    ...before.filter((line) => !inAfter.has(line)).map((line) => `-${line}`),
    ...after.filter((line) => !inBefore.has(line)).map((line) => `+${line}`),
  ];
  lines.sort((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1));
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), `… ${lines.length - MOST_LINES} more lines`];
}
