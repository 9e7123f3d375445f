// The agent without its web server, in a process whose memory is bounded as in the image.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { imageStart } from './image.mjs';

/** `ask` resolves with what the command of agent-core.mjs measured. */
export async function startCore(settings, flags = []) {
  const image = imageStart();
  const child = fork(fileURLToPath(new URL('agent-core.mjs', import.meta.url)), [JSON.stringify(settings)], {
    execArgv: [...image.flags, ...flags],
    env: { ...process.env, ...image.env },
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
