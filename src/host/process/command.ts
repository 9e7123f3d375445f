import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join, resolve as resolvePath } from 'node:path';
import { defined } from '../../model/defined.ts';
import type { Observe } from '../../model/observation.ts';
import { type Clock, systemClock } from '../clock.ts';
import { errnoName } from '../fs/tree.ts';
import { type ChildRegistry, noChildRegistry } from '../host.ts';

export interface CommandLimits {
  /** Time from the start to SIGTERM, which goes to the whole process group. */
  readonly deadlineMs: number;
  /** Time from SIGTERM to SIGKILL. */
  readonly killAfterMs?: number;
  /** Limit for stdout and stderr each. More output ends the command. */
  readonly maxOutputBytes?: number;
  /** Directories of the driver in which the program is searched after {@link SEARCH_PATH}. */
  readonly directories?: readonly string[];
  /** Variables of the program, beside PATH and LC_ALL. */
  readonly env?: Readonly<Record<string, string>>;
  readonly children?: ChildRegistry;
  /** Takes how the command ended. */
  readonly observe?: Observe | undefined;
  /** Clock of the deadline. Default: the system clock. */
  readonly clock?: Clock;
}

/** Why a command failed. Closed set. */
export type CommandFailure = 'not-found' | 'permission' | 'failed-to-start' | 'timeout' | 'too-large';

/** Result of a command, successful or not. */
export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Absent when the command did not start or a signal ended it. */
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly failure?: CommandFailure;
  /** Present when even SIGKILL did not end the command, because it sleeps in the kernel. Resolves when the command ends. */
  readonly stillRunning?: Promise<void>;
}

const START_FAILURES: Readonly<Record<string, CommandFailure>> = {
  ENOENT: 'not-found',
  ENOTDIR: 'not-found',
  EACCES: 'permission',
  EPERM: 'permission',
};
/** After this time from SIGKILL, only a process in uninterruptible sleep still exists. */
const REAP_MS = 500;

/** Directories of the system in which a program without a path is searched. */
export const SEARCH_PATH: readonly string[] = ['/usr/bin', '/usr/sbin', '/bin', '/sbin', '/usr/local/bin'];

/**
 * Returns the absolute path of a program. The inherited PATH is not used, and the program does not inherit the environment: whoever can set
 * a variable of the agent must not thereby decide what runs as root.
 */
function programAt(name: string, directories: readonly string[]): string {
  if (name.includes('/')) return resolvePath(name);
  return directories.map((directory) => join(directory, name)).find(isExecutable) ?? join(SEARCH_PATH[0] as string, name);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs one program without a shell, in its own process group, so that its children are killed with it. It always returns: at the deadline
 * the group gets SIGTERM, then SIGKILL, and it does not wait for a grandchild that keeps a pipe open.
 */
export async function runCommand(file: string, args: readonly string[], limits: CommandLimits): Promise<CommandResult> {
  const result = await run(file, args, limits);
  const { stillRunning: _, ...end } = result;
  limits.observe?.({ kind: 'command', program: file, args, ...end });
  return result;
}

function run(file: string, args: readonly string[], limits: CommandLimits): Promise<CommandResult> {
  const {
    deadlineMs,
    killAfterMs = 500,
    directories = [],
    maxOutputBytes = 16 * 1_024 * 1_024,
    children = noChildRegistry,
    clock = systemClock,
  } = limits;
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      const searched = [...SEARCH_PATH, ...directories];
      const env = { PATH: searched.join(':'), LC_ALL: 'C', ...limits.env };
      child = spawn(programAt(file, searched), args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env });
    } catch (error) {
      resolve({ stdout: '', stderr: '', failure: START_FAILURES[errnoName(error)] ?? 'failed-to-start' });
      return;
    }
    const { pid } = child;
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[], bytes: { stdout: 0, stderr: 0 } };
    let failure: CommandFailure | undefined;
    const timers = new Set<() => void>();
    const later = (ms: number, run: () => void): void => {
      timers.add(clock.after(ms, run));
    };
    let settled = false;
    const settle = (end: Pick<CommandResult, 'exitCode' | 'signal' | 'stillRunning'>): void => {
      if (settled) return;
      settled = true;
      for (const cancel of timers) cancel();
      // Kills the processes of the group that outlived the program.
      signalGroup(pid, 'SIGKILL');
      child.stdout?.destroy();
      child.stderr?.destroy();
      // A program that sleeps in the kernel must not keep this process from ending.
      if (end.stillRunning !== undefined) child.unref();
      const text = (name: 'stdout' | 'stderr'): string => Buffer.concat(output[name]).toString('utf8');
      resolve({ stdout: text('stdout'), stderr: text('stderr'), ...end, ...defined({ failure }) });
    };
    const exited = new Promise<void>((done) => {
      child.once('exit', () => {
        if (pid !== undefined) children.ended(pid);
        done();
      });
    });
    const end = (why: CommandFailure): void => {
      if (failure !== undefined) return;
      failure = why;
      signalGroup(pid, 'SIGTERM');
      later(killAfterMs, () => {
        signalGroup(pid, 'SIGKILL');
        later(REAP_MS, () => settle(child.exitCode === null && child.signalCode === null ? { stillRunning: exited } : {}));
      });
    };
    child.once('error', (error) => {
      failure = START_FAILURES[errnoName(error)] ?? 'failed-to-start';
      settle({});
    });
    if (pid === undefined) return;
    children.started(pid);
    later(deadlineMs, () => end('timeout'));
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.on('data', (chunk: Buffer) => {
        output.bytes[name] += chunk.length;
        if (output.bytes[name] > maxOutputBytes) end('too-large');
        else output[name].push(chunk);
      });
      child[name]?.on('error', () => {});
    }
    const ended = (exitCode: number | null, signal: NodeJS.Signals | null): void =>
      settle({ ...(exitCode === null ? {} : { exitCode }), ...(signal === null ? {} : { signal }) });
    child.once('close', ended);
    // A grandchild may keep the pipes open after the program has ended. It is killed after a short delay.
    child.once('exit', (exitCode, signal) => {
      later(100, () => {
        signalGroup(pid, 'SIGKILL');
        later(100, () => ended(exitCode, signal));
      });
    });
  });
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
}
