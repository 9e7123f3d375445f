import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Environment } from '../../config/environment.ts';
import { variableOf } from '../../config/registry.ts';
import { UserError } from '../../errors.ts';
import { readStart } from '../../host/fs/tree.ts';
import { NODE_PREFIX, STATE_FILE } from '../../sim/node.ts';
import type { CommandContext } from '../context.ts';
import { CONTROL_SOCKET, type ControlAnswer, type ControlRequest, DEMO_FILE, type DemoFacts } from './control.ts';

/** A demo of this user, as its file says. */
export interface RunningDemo extends DemoFacts {
  /** Path of its control socket. */
  readonly socket: string;
}

const LARGEST_FILE = 4_096;
const LARGEST_ANSWER = 4 * 1024 * 1024;
/** A demo on a busy machine is slow, and is waited for while it lives. */
const ANSWER_MS = 5_000;
const LONGEST_MS = 300_000;

/**
 * Asks the demo with a process id; otherwise the one to which the `env` file leads all commands of this terminal, or the newest one of this
 * user. A demo that was killed leaves its file, so the next one is asked. Throws a {@link UserError} when no demo answers, and when the demo
 * refuses.
 */
export async function askDemo(
  { environment, logger }: Pick<CommandContext, 'environment' | 'logger'>,
  request: ControlRequest,
  pid: number | undefined,
): Promise<{ readonly demo: RunningDemo; readonly answer: ControlAnswer }> {
  const demos = demosOfUser(environment);
  for (const demo of demos.filter((each) => pid === undefined || each.pid === pid)) {
    const answer = await ask(demo, request, () => logger.warn('the demo is busy; waiting for its answer', { pid: demo.pid }));
    if (answer === undefined) continue;
    if ('refused' in answer) throw new UserError('demo-fault-refused', { problem: `${answer.refused}${otherDemos(demos, demo)}` });
    return { demo, answer };
  }
  throw new UserError('demo-absent', { which: pid === undefined ? '' : ` with the process id ${pid}` });
}

/** Several demos can run, so the message names the one that answered. */
function otherDemos(demos: readonly RunningDemo[], { pid, address }: RunningDemo): string {
  return demos.length === 1 ? '' : ` (of the demo ${pid} at ${address}; --demo=PID asks another one)`;
}

/** The state file of the newest demo of this user that runs; undefined without one. */
export function stateFileOfDemo(environment: Environment): { readonly file: string; readonly demo: RunningDemo } | undefined {
  for (const demo of demosOfUser(environment)) {
    const file = join(dirname(demo.socket), STATE_FILE);
    if (isAlive(demo.pid) && existsSync(file)) return { file, demo };
  }
  return undefined;
}

/** The one of the environment is first, then the newest one. A directory of another user is not believed. */
function demosOfUser(environment: Environment): readonly RunningDemo[] {
  const chosen = dirname(environment[variableOf('path.sysfs')] ?? '');
  const directory = tmpdir();
  const names = namesIn(directory).filter((name) => name.startsWith(NODE_PREFIX));
  const isChosen = ({ socket }: RunningDemo): number => Number(dirname(socket) === chosen);
  return names.flatMap((name) => demoIn(join(directory, name))).sort((a, b) => isChosen(b) - isChosen(a) || b.startedMs - a.startedMs);
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function demoIn(root: string): readonly RunningDemo[] {
  try {
    const stats = lstatSync(root);
    if (!stats.isDirectory() || stats.uid !== process.getuid?.()) return [];
    const facts = JSON.parse(readStart(join(root, DEMO_FILE), LARGEST_FILE).toString('utf8')) as Partial<DemoFacts> | null;
    const { pid, address, startedMs } = facts ?? {};
    if (typeof pid !== 'number' || typeof address !== 'string' || typeof startedMs !== 'number') return [];
    return [{ pid, address, startedMs, socket: join(root, CONTROL_SOCKET) }];
  } catch {
    return [];
  }
}

/** Undefined when no process listens. */
function ask({ socket: path, pid }: RunningDemo, request: ControlRequest, onBusy: () => void): Promise<ControlAnswer | undefined> {
  return new Promise((resolve, reject) => {
    const silent = (problem: string): void => reject(new UserError('demo-silent', { pid: String(pid), problem }));
    const socket = connect(path);
    let text = '';
    const startedMs = Date.now();
    socket.setTimeout(ANSWER_MS).on('timeout', () => {
      const waitedMs = Date.now() - startedMs;
      if (isAlive(pid) && waitedMs < LONGEST_MS) {
        onBusy();
        return void socket.setTimeout(ANSWER_MS);
      }
      silent(`nothing within ${Math.round(waitedMs / 1_000)} s`);
      socket.destroy();
    });
    socket.once('connect', () => socket.write(`${JSON.stringify(request)}\n`));
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
      ['ENOENT', 'ECONNREFUSED'].includes(code) ? resolve(undefined) : silent(code),
    );
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.length > LARGEST_ANSWER) socket.destroy();
    });
    socket.once('close', () => {
      const answer = answerIn(text);
      if (answer === undefined) silent('it closed the connection without an answer');
      else resolve(answer);
    });
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function answerIn(text: string): ControlAnswer | undefined {
  try {
    return JSON.parse(text) as ControlAnswer;
  } catch {
    return undefined;
  }
}
