import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { PROGRAM } from '../support/program.ts';

export const MAIN = PROGRAM;

export interface Ran {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built command in a process of its own, with no variables but those given, and with a limit of open files. */
export function run(args: readonly string[], environment: Readonly<Record<string, string>> = {}, most?: number): Promise<Ran> {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: run "npm run build" first`);
  return new Promise((resolve) => {
    const limit = most === undefined ? '' : `ulimit -n ${most}; `;
    const child = spawn('/bin/sh', ['-c', `${limit}exec "$@"`, 'sh', process.execPath, MAIN, ...args], {
      env: { PATH: process.env.PATH, DEVICE_AGENT_STATE_FILE: '', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.once('close', (status, signal) => resolve({ status, signal, stdout, stderr }));
  });
}
