// The real agent, `serve`, on a simulated node.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { DIST } from './dist.mjs';

/** A state file of its own, so that nothing is known from an earlier start. */
export function serveArguments(node, kubelet, interval) {
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

/** Resolves when it listens. `start`: how the program is started, by default as it was built. */
export async function startServe(node, kubelet, { interval, flags = [], start = { words: [`${DIST}/cli/main.js`], env: {} } }) {
  const args = [...start.words, 'serve', ...serveArguments(node, kubelet, interval), ...flags];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...start.env }, stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface({ input: child.stderr })) {
    const { address } = JSON.parse(line);
    if (address === undefined) continue;
    child.stderr.resume();
    return {
      pid: child.pid,
      port: Number(new URL(address).port),
      stop: async () => {
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
  }
  throw new Error('the agent did not start');
}
