import { type RunningAgent, startAgent } from '../../agent/agent.ts';
import { loadConfiguration } from '../../config/configuration.ts';
import { UserError } from '../../errors.ts';
import { systemClock } from '../../host/clock.ts';
import { visible } from '../../model/one-line.ts';
import { ReplayNode } from '../../sim/replay/replay-node.ts';
import { captureFault, readCapture } from '../capture/file.ts';
import { usedConfig } from '../config.ts';
import type { CommandContext, Ending } from '../context.ts';
import { ownCommand } from '../own-command.ts';
import { replayFlags } from '../replay/flags.ts';
import { stopInTime } from '../serve/serve.ts';
import { agentSettings } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { readVersion } from '../version.ts';

const REFRESH = 'refresh.interval';

/** Runs the agent on a captured node until a signal arrives or the reader closes the output. After the last frame the node stays as it is. */
export async function runReplayDemo(context: CommandContext): Promise<Ending> {
  const { registry, environment, families, logger, output, options, flags } = context;
  const ended = Promise.race([stopSignal(), new Promise<'closed'>((resolve) => output.onClosed(() => resolve('closed')))]);
  const file = String(options.replay);
  const speed = speedOf(options.speed);
  const capture = await readCapture(file);
  const node = new ReplayNode(capture, families, Math.max(0, systemClock.now() - (capture.frames[0]?.wallMs ?? 0)));
  let agent: RunningAgent | undefined;
  try {
    await node.step();
    const all = new Map([[REFRESH, `${Math.max(100, Math.round(2_000 / speed))}ms`], ...replayFlags(registry, node, flags)]);
    const { configuration } = await loadConfiguration(registry, environment, all);
    agent = await startAgent(agentSettings(configuration, families), {
      logger,
      version: readVersion().version,
      printed: usedConfig(context, () => configuration),
    });
    await output.write(welcome(agent.address, visible(file), capture.frames.length, node));
    const trouble = await Promise.race([ended, play(node, speed)]);
    const isStuck = !(await stopInTime(agent, logger));
    if (trouble instanceof Error) throw trouble;
    return { status: 0, isStuck };
  } catch (error) {
    throw captureFault(file, error);
  } finally {
    node.stop();
  }
}

/** Plays the further frames at their times. Resolves only with an error. */
async function play(node: ReplayNode, speed: number): Promise<Error> {
  const startedMs = systemClock.monotonic();
  try {
    for (let next = node.nextFrame; next !== undefined; next = node.nextFrame) {
      const waitMs = next.atMs / speed - (systemClock.monotonic() - startedMs);
      await new Promise<void>((resolve) => void systemClock.after(Math.max(0, waitMs), resolve));
      await node.step();
    }
  } catch (error) {
    return error as Error;
  }
  return await new Promise<Error>(() => {});
}

function speedOf(text: unknown): number {
  const speed = text === undefined ? 1 : Number(text);
  if (speed > 0 && speed <= 1_000) return speed;
  throw new UserError('flag-invalid', { flag: '--speed', problem: 'must be a number above 0 and up to 1000' });
}

function welcome(address: string, file: string, frames: number, node: ReplayNode): string {
  const flags = Object.entries(node.options()).map(([key, value]) => visible(`--${key}=${value}`));
  return `The node of the capture ${file} with ${frames} frames.

  Page           ${address}/
  Metrics        ${address}/metrics

The other commands also work on this node:

  ${ownCommand()} list ${flags.join(' \\\n    ')}

Ctrl-C ends the demo and removes all its files.
`;
}
