import { type RunningAgent, startAgent } from '../../agent/agent.ts';
import { systemClock } from '../../host/clock.ts';
import type { Logger } from '../../log/logger.ts';
import { usedConfig } from '../config.ts';
import type { CommandContext, Ending } from '../context.ts';
import { agentSettings } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { readVersion } from '../version.ts';
import { ConfigReload } from './config-reload.ts';

/** The process must end within five seconds after the signal; one second remains for the exit itself. */
const STOP_MS = 4_000;

/** Runs the agent until a stop signal. */
export async function runServe(context: CommandContext): Promise<Ending> {
  const { configuration, families, logger } = context;
  const { version, nodeVersion } = readVersion();
  const signal = stopSignal(['SIGTERM', 'SIGINT']);
  const reload = ConfigReload.of(context, systemClock);
  process.on('SIGHUP', () => {
    if (reload === undefined) return logger.info('there is no configuration file to reload', { signal: 'SIGHUP' });
    logger.info('reading the configuration file again', { signal: 'SIGHUP' });
    void reload.reload();
  });
  logger.info('starting', { version, nodeVersion, pid: process.pid });
  logger.info('configuration in use', { file: configuration.file?.path ?? 'none', set: configuration.givenSections() });
  warnOfSysfs(context);
  const watched = reload && { config: () => reload.status(), reload: () => reload.reload() };
  const started = startAgent(agentSettings(configuration, families), {
    logger,
    version,
    printed: usedConfig(
      context,
      () => reload?.running ?? configuration,
      () => reload?.status().waiting ?? [],
    ),
    ...watched,
  });
  const agent = await Promise.race([started, signal]);
  if (typeof agent === 'string') {
    logger.info('stopping before the start has ended', { signal: agent });
    return { status: 0, isStuck: !(await stopInTime({ stop: async () => (await started).stop() }, logger)) };
  }
  reload?.start(agent);
  logger.info('serving', { address: agent.address });
  logger.info('stopping', { signal: await signal });
  reload?.stop();
  return { status: 0, isStuck: !(await stopInTime(agent, logger)) || reload?.isPending === true };
}

/** Stops the agent. Returns false when a part of it did not end in time. */
export async function stopInTime(agent: Pick<RunningAgent, 'stop'>, logger: Logger): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), STOP_MS);
  });
  const ended = await Promise.race([agent.stop(), late]);
  clearTimeout(timer);
  if (!ended) logger.warn('a part of the agent did not stop in time; exiting anyway');
  return ended;
}
