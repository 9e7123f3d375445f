import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PROGRAM } from './program.ts';
import { DEADLINE_MS, until } from './until.ts';

const OUTPUT: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];

/** An agent in a process of its own. */
export interface ServedAgent {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it logged so far. */
  log(): string;
  metrics(): Promise<string>;
  /** Waits until the metrics page satisfies a condition; fails with the page's end when it never does. */
  until(what: string, condition: (page: string) => boolean): Promise<string>;
  /** Sends a signal and gives the exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** The directory of the simulated node of a demo, which its welcome names. */
export function nodeOf(demo: ServedAgent): string {
  const root = /^ *\. (.*)\/env$/m.exec(demo.log())?.[1];
  if (root === undefined) throw new Error(`the demo names no node:\n${demo.log()}`);
  return root;
}

/** The built agent. Other constants can be given to the build only, not to the bundle. */
export function serve(flags: readonly string[], command = 'serve', settings: Pick<SpawnOptions, 'env'> = {}): Promise<ServedAgent> {
  const program = settings.env?.TEST_CONSTANTS === undefined ? PROGRAM : 'dist/cli/main.js';
  return startAgent([process.execPath, program, command, ...flags], settings);
}

/** Starts any build of the agent by its command line, and waits for its address; fails with its log when there is none. */
export async function startAgent(commandLine: readonly string[], settings: Pick<SpawnOptions, 'cwd' | 'env'> = {}): Promise<ServedAgent> {
  const [program = '', ...words] = commandLine;
  const child = spawn(program, [...words, '--web.listen-address=127.0.0.1:0', '--log.format=json'], { ...settings, stdio: OUTPUT });
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    const fail = (what: string): void => reject(new Error(`the agent ${what} before it served:\n${log}`));
    const look = (chunk: Buffer): void => {
      log += chunk.toString();
      const found = /"address":"(https?:[^"]+)"|Page\s+(http:\S+?)\/?\s/.exec(log);
      if (found !== null) resolve((found[1] ?? found[2]) as string);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('error', reject);
    child.once('exit', (status) => fail(`ended with ${status}`));
    setTimeout(() => fail('was not there in time'), DEADLINE_MS).unref();
  }).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return served(child, url, () => log);
}

function served(child: ChildProcess, url: string, log: () => string): ServedAgent {
  // A connection of its own: the agent ends an idle one just when a busy machine uses it again.
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`, { headers: { connection: 'close' } })).text();
  return {
    url,
    child,
    log,
    metrics,
    async until(what, condition) {
      let page = '';
      const look = async (): Promise<boolean> => {
        page = await metrics();
        return condition(page);
      };
      await until(look, what, () => `${page.slice(-3_000)}\n${log().slice(-2_000)}`);
      return page;
    },
    async stop(signal = 'SIGTERM') {
      // A process that a signal ended has no exit status.
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const exited = once(child, 'exit');
      child.kill(signal);
      const late = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
      const [status] = (await exited) as [number | null];
      clearTimeout(late);
      return status;
    },
  };
}

/** Value of one series; undefined when the page does not have it. Labels may be given in any order and in part. */
export function seriesValue(page: string, name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
  for (const line of page.split('\n')) {
    if (!line.startsWith(name) || !/^[{ ]/.test(line.slice(name.length))) continue;
    if (Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)))
      return Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return undefined;
}
