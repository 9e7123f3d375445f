import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** The built agent in a process of its own. */
export interface ServedAgent {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it logged so far. */
  log(): string;
  metrics(): Promise<string>;
  /** Waits until the metrics page satisfies a condition; fails with the page's end when it never does. */
  until(what: string, condition: (page: string) => boolean, timeoutMs?: number): Promise<string>;
  /** Sends a signal and gives the exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** `wrapper`: a command that runs the one that follows it, such as one that sets a limit first. */
export async function serve(flags: readonly string[], command = 'serve', wrapper: readonly string[] = []): Promise<ServedAgent> {
  const own = [process.execPath, 'dist/cli/main.js', command, '--web.listen-address=127.0.0.1:0', '--log.format=json', ...flags];
  const [program = '', ...words] = [...wrapper, ...own];
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  const url = await new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      log += chunk.toString();
      const found = /"address":"(http:[^"]+)"|Page\s+(http:\S+?)\/?\s/.exec(log);
      if (found !== null) resolve((found[1] ?? found[2]) as string);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (status) => reject(new Error(`the agent ended with ${status} before it served:\n${log}`)));
  });
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
  return {
    url,
    child,
    log: () => log,
    metrics,
    async until(what, condition, timeoutMs = 15_000) {
      const endMs = Date.now() + timeoutMs;
      for (;;) {
        const page = await metrics();
        if (condition(page)) return page;
        if (Date.now() > endMs) throw new Error(`never seen: ${what}\n${page.slice(-3_000)}\n${log.slice(-2_000)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode !== null) return child.exitCode;
      const exited = once(child, 'exit');
      child.kill(signal);
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
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
