import { setTimeout as pause } from 'node:timers/promises';
import { type RunningAgent, startAgent } from '../../agent/agent.ts';
import { loadConfiguration } from '../../config/configuration.ts';
import { systemClock } from '../../host/clock.ts';
import { visible } from '../../model/one-line.ts';
import { captureFault, readCapture } from '../capture/file.ts';
import { usedConfig } from '../config.ts';
import type { CommandContext, Ending } from '../context.ts';
import { ReplayedNode } from '../replay/node.ts';
import { stopInTime } from '../serve/serve.ts';
import { agentSettings } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { readVersion } from '../version.ts';

const REFRESH = 'refresh.interval';

/** Runs the agent on a captured node until a signal arrives or the reader closes the output. After the second read the node stays as it is. */
export async function runReplayDemo(context: CommandContext): Promise<Ending> {
  const { registry, environment, families, logger, output, options, flags } = context;
  const ended = Promise.race([stopSignal(), new Promise<'closed'>((resolve) => output.onClosed(() => resolve('closed')))]);
  const file = String(options.replay);
  const capture = await readCapture(file);
  const [first, second] = capture.reads;
  const node = new ReplayedNode(capture, families, Math.max(0, systemClock.now() - first.wallMs));
  try {
    await node.show(0);
    const { configuration } = await loadConfiguration(registry, environment, new Map([[REFRESH, '2s'], ...node.flags(registry, flags)]));
    const settings = agentSettings(configuration, families);
    const roots = { ...settings.roots, isReplay: true } as const;
    const agent: RunningAgent = await startAgent(
      { ...settings, roots },
      { logger, version: readVersion().version, printed: usedConfig(context, () => configuration) },
    );
    await output.write(welcome(agent.address, visible(file)));
    const trouble = await Promise.race([
      ended,
      pause(second.atMs - first.atMs, undefined, { ref: false })
        .then(() => node.show(1))
        .then(
          () => ended,
          (error: Error) => error,
        ),
    ]);
    const isStuck = !(await stopInTime(agent, logger));
    if (trouble instanceof Error) throw trouble;
    return { status: 0, isStuck };
  } catch (error) {
    throw captureFault(file, error);
  } finally {
    node.stop();
  }
}

const welcome = (address: string, file: string): string => `The node of the capture ${file}.

  Page           ${address}/
  Metrics        ${address}/metrics

Ctrl-C ends the demo and removes all its files.
`;
