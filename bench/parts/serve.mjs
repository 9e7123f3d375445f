// The real agent, `serve`, on a simulated node.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { DIST } from './dist.mjs';

/** A state file of its own, so that nothing is known from an earlier start. */
function serveArguments(node, kubelet, interval) {
  const options = Object.entries(node.options).flatMap(([family, given]) =>
    Object.entries(given).map(([option, value]) => `--probe.${family}.${option}=${value}`),
  );
  return [
    '--web.listen-address=127.0.0.1:0',
    '--log.format=json',
    '--log.level=info',
    `--refresh.interval=${interval}`,
    `--state.file=${node.root}/health-${process.hrtime.bigint()}.json`,
    `--path.sysfs=${node.roots.sysfs}`,
    `--path.procfs=${node.roots.procfs}`,
    `--path.dev=${node.roots.dev}`,
    `--podresources.socket=${kubelet.podResourcesSocket}`,
    `--podresources.checkpoint=${kubelet.checkpoint}`,
    ...options,
  ];
}

/** Lets as many requests in as come, all from one address: a benchmark measures the work, not the limit. */
const UNLIMITED = `import { webOptions } from ${JSON.stringify(pathToFileURL(resolve(DIST, 'server/options.js')).href)}; webOptions['max-requests'].default = 0;`;
export const WITHOUT_LIMIT = `--import=data:text/javascript,${encodeURIComponent(UNLIMITED)}`;

/** Resolves when it listens. `start`: how the program is started, by default as it was built. */
export async function startServe(
  node,
  kubelet,
  { interval, flags = [], start = { words: [WITHOUT_LIMIT, `${DIST}/cli/main.js`], env: {} } },
) {
  const own = serveArguments(node, kubelet, interval);
  const agent = await startAgent([...start.words, 'serve', ...own, ...flags], start.env, start);
  // Commands with these flags ask this agent.
  return { ...agent, flags: own };
}

/**
 * Starts an agent whose log is JSON, by the words after `node`, and waits for its address; fails with its log when it ends before.
 * `hasChannel`: whether messages can be sent to the child. `group`: see memory-group.mjs.
 */
export async function startAgent(words, env = {}, { hasChannel = false, group = undefined } = {}) {
  const stdio = ['ignore', 'ignore', 'pipe', ...(hasChannel ? ['ipc'] : [])];
  const [program, ...before] = [...(group?.start ?? []), process.execPath];
  const child = spawn(program, [...before, ...words], { env: { ...process.env, ...env }, stdio });
  const said = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    const [, port] = /"address":"http:[^"]+:(\d+)"/.exec(line) ?? [];
    if (port === undefined) continue;
    child.stderr.resume();
    return { child, pid: child.pid, port: Number(port), stop: () => end(child) };
  }
  throw new Error(`the agent did not start:\n${said.join('\n')}`);
}

/** Gives the exit status once it has ended. */
async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  child.kill('SIGTERM');
  return (await once(child, 'exit'))[0];
}
