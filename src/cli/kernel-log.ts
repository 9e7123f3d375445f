import { parseArgs } from 'node:util';
import { UserError } from '../errors.ts';
import { systemClock } from '../host/clock.ts';
import { ReplacedSocket } from '../host/fs/replaced-socket.ts';
import { kernelLogPath } from '../host/host.ts';
import { relayServer } from '../host/kernel-log/relay.ts';
import { openLog } from '../host/kernel-log/source.ts';
import { pathOptions } from '../host/options.ts';
import { createChangeLog, type Trouble } from '../log/changes.ts';
import { createLogger, type Logger } from '../log/logger.ts';
import type { CommandContext, Ending } from './context.ts';
import { stopSignal } from './signals.ts';

interface RelayPaths {
  readonly socket: string;
  /** The kernel log. */
  readonly log: string;
}

/** The user of the agent, who is the user of this process. */
const OWNER_ONLY = 0o600;

export async function runKernelLog({ configuration, options, logger }: CommandContext): Promise<Ending> {
  const log = kernelLogPath(configuration.section('path', pathOptions));
  const { socket } = options;
  if (typeof socket !== 'string' || socket === '') throw new UserError('flag-invalid', { flag: '--socket', problem: 'needs a path' });
  if (log === undefined) throw new UserError('flag-invalid', { flag: '--path.kmsg', problem: 'needs a path' });
  return await relay({ socket, log }, logger);
}

/** Variables that can change what this command does. */
const OF_OPTIONS = /^DEVICE_AGENT_(?:PATH|LOG|CONFIG)_/;

/**
 * The paths, when the command line has nothing but them. This process then needs no other code of the agent: no families, no configuration, and half of
 * the memory.
 */
export function relayRequest(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): RelayPaths | undefined {
  if (args[0] !== 'kernel-log' || Object.keys(environment).some((name) => OF_OPTIONS.test(name))) return undefined;
  try {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({ args: args.slice(1), options: { socket: text, 'path.kmsg': text } });
    const log = kernelLogPath({ dev: '/dev', kmsg: values['path.kmsg'] ?? 'kmsg' });
    return values.socket === undefined || values.socket === '' || log === undefined ? undefined : { socket: values.socket, log };
  } catch {
    // The parser of all commands says what is wrong.
    return undefined;
  }
}

/** Passes the log on until a stop signal. */
export async function relay(
  { socket, log }: RelayPaths,
  logger: Logger = createLogger({ level: 'info', format: 'text' }),
): Promise<Ending> {
  const signal = stopSignal(['SIGTERM', 'SIGINT']);
  const changes = createChangeLog(logger);
  const kept = await ReplacedSocket.open({
    path: socket,
    mode: OWNER_ONLY,
    serve: () =>
      relayServer(
        () => openLog(log),
        (errno) => changes.update('log', errno === undefined ? [] : [unreadable(log, errno)]),
      ),
    mayReplace: () => false,
    isYielded: () => false,
    clock: systemClock,
    looked: (problem) => changes.update('socket', problem === undefined ? [] : [away(socket, problem)]),
  });
  logger.info('passing the kernel log on', { socket, log });
  logger.info('stopping', { signal: await signal });
  await kept.close();
  return { status: 0 };
}

const unreadable = (path: string, errno: string): Trouble => ({
  key: path,
  message: 'the kernel log cannot be read, so the agent misses errors that drivers only log',
  ended: 'the kernel log could not be read; it is read again',
  fields: { path },
  detail: errno,
  remedy: 'Mount /dev/kmsg of the host, and make the container privileged.',
});

const away = (path: string, problem: string): Trouble => ({
  key: path,
  message: 'the socket is not in its place, so the agent cannot read the kernel log',
  ended: 'the socket was not in its place; it is there again',
  fields: { path },
  detail: problem,
  remedy: 'It is made again within two seconds when the cause is gone.',
});
