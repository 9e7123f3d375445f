import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { LONGEST_TIMER_MS } from '../host/clock.ts';
import { SEARCH_PATH } from '../host/process/command.ts';
import { createOutput } from './output.ts';
import { endBySignals, ignoreInspectorSignal } from './signals.ts';
import { formatVersion, readVersion, versionRequest } from './version.ts';

/** Runs one command line and exits with its status. */
export async function start(args: readonly string[]): Promise<void> {
  ignoreInspectorSignal();
  // Libraries start programs through a shell: they must not take them from an inherited PATH either.
  process.env.PATH = SEARCH_PATH.join(':');
  endBySignals();
  if (!args.includes('serve')) endBeforeAgent();
  ensureDirectory();
  const output = createOutput(process.stdout);
  // A closed stderr must not end the agent.
  process.stderr.on('error', () => {});
  const format = versionRequest(args);
  if (format !== undefined) return await output.write(formatVersion(readVersion(), format));
  // Timers, threads and children of the agent keep no process, so that none delays its end. This one does, for whatever waits for them, up to `leave`.
  setInterval(() => {}, LONGEST_TIMER_MS);
  if (args[0] === 'kernel-log') {
    const { relay, relayRequest } = await import('./kernel-log.ts');
    const asked = relayRequest(args, process.env);
    if (asked !== undefined) return leave((await relay(asked)).status, false);
  }
  const { runCommandLine } = await import('./run.ts');
  const { status, isStuck = false } = await runCommandLine(args, process.env, output);
  leave(status, isStuck);
}

/**
 * When memory is short, the kernel ends this command instead of the agent, which has the same memory limit: 1000 is the highest value
 * (`proc_pid_oom_score_adj(5)`). Without the file, or without the right, the command runs as it is.
 */
function endBeforeAgent(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // The command is then as likely to be ended as the agent.
  }
}

/** Node cannot start a thread in a removed directory. Relative paths do not work there anyway. */
function ensureDirectory(): void {
  try {
    process.cwd();
  } catch {
    process.chdir('/');
  }
}

/** Ends the process that started it when that is still there after two seconds. */
const END_PARENT = 'setTimeout((pid) => process.ppid === pid && process.kill(pid, "SIGKILL"), 2_000, Number(process.argv[1]))';

/**
 * `process.exit` first joins all threads, and one that reads a file of a file system that hangs never ends. Only a signal of another process ends
 * this one then.
 */
function leave(status: number, isStuck: boolean): never {
  if (isStuck) spawn(process.execPath, ['-e', END_PARENT, String(process.pid)], { detached: true, stdio: 'ignore' });
  return process.exit(status);
}
