import { get } from '../host/node-http.ts';
import { TURN_PATH } from '../server/control/control-socket.ts';
import { ownSocket, stateFileOf } from './agent-api.ts';
import type { CommandContext } from './context.ts';

/** An agent that hangs must not hold up the commands that find out why. */
const HEAD_MS = 2_000;
/** A wait that is shorter is not worth a word. */
const UNTOLD_MS = 300;
/** Long enough for a capture and a doctor. */
const LONGEST_WAIT_MS = 60_000;

const WAITING = 'another command reads the devices beside the agent; this one waits, because both need memory of the same container\n';
const ENOUGH = `it has waited ${LONGEST_WAIT_MS / 1_000} s and goes on; when memory is short, the kernel ends one of the two (exit status 137)\n`;
const MANY = 'many commands read the devices beside the agent; when memory is short, the kernel ends one of them (exit status 137)\n';

/**
 * Waits until no other command reads the devices beside the agent, one minute at most. The turn lasts until this process ends. Without an agent
 * there is none. Never rejects.
 */
export async function takeTurn(
  context: Pick<CommandContext, 'configuration' | 'flags'>,
  tell: (text: string) => void = (text) => void process.stderr.write(text),
): Promise<void> {
  const file = stateFileOf(context);
  const socketPath = file === undefined ? undefined : await ownSocket(file).catch(() => undefined);
  if (socketPath === undefined) return;
  await new Promise<void>((resolve) => {
    let timers: NodeJS.Timeout[] = [];
    const done = (text?: string): void => {
      timers.forEach(clearTimeout);
      // The connection alone must not keep the process alive.
      sent.socket?.unref();
      if (text !== undefined) tell(text);
      resolve();
    };
    const sent = get({ socketPath, path: TURN_PATH, agent: false }, (response) => {
      timers.forEach(clearTimeout);
      if (response.statusCode === 503) return done(MANY);
      timers = [setTimeout(tell, UNTOLD_MS, WAITING), setTimeout(done, LONGEST_WAIT_MS, ENOUGH)];
      for (const event of ['data', 'close', 'error']) response.once(event, () => done());
    });
    sent.once('error', () => done());
    timers = [setTimeout(done, HEAD_MS)];
  });
}
