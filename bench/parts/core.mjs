// The agent without its web server, in a process whose memory is bounded as in the image.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { imageStart } from './image.mjs';

/** `ask` resolves with what the command of agent-core.mjs measured. `checkout`: of another version, which is built. */
export async function startCore(settings, flags = [], checkout = undefined) {
  const image = imageStart();
  const program =
    checkout === undefined ? fileURLToPath(new URL('agent-core.mjs', import.meta.url)) : `${checkout}/bench/parts/agent-core.mjs`;
  const child = fork(program, [JSON.stringify(settings)], {
    execArgv: [...image.flags, ...flags],
    env: { ...process.env, ...image.env, ...(checkout !== undefined && { BENCH_DIST: `${checkout}/dist` }) },
  });
  const exited = once(child, 'exit');
  const answer = () => Promise.race([once(child, 'message'), exited.then((how) => Promise.reject(new Error(`the core ended: ${how}`)))]);
  await answer();
  return {
    pid: child.pid,
    async ask(command, rest = {}) {
      child.send({ command, ...rest });
      return (await answer())[0];
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
