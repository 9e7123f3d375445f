import type { Configuration } from '../../config/configuration.ts';
import { type Ask, type Asked, REFUSAL_TEXTS } from '../agent-api.ts';
import { isBoard } from './board-check.ts';
import { detailOf } from './detail.ts';
import type { BoardAnswer, BoardSource } from './source.ts';

/** As often as the page gets news. The agent answers from its snapshot, and reads no hardware for it. */
const INTERVAL_MS = 2_000;

/** Boards of the agent that runs on the node. */
export function agentSource(configuration: Configuration, asking: Ask): BoardSource {
  const ask: Ask = (path) => asking(path).catch(() => ({}));
  return {
    name: `agent at ${configuration.setting('web.listen-address').value}`,
    intervalMs: INTERVAL_MS,
    board: async () => boardIn(await ask('/api/board')),
    async detail(family, id) {
      const [device, events] = await Promise.all([
        ask(`/api/v1/devices/${encodeURIComponent(family)}/${encodeURIComponent(id)}`),
        ask('/api/v1/events'),
      ]);
      return device.answer?.status === 200 ? detailOf(device.answer.body, events.answer?.body, `${family}/${id}`) : undefined;
    },
    close: () => Promise.resolve(true),
  };
}

/** What an agent says, or why it says nothing. */
function boardIn({ answer, refusal }: Asked): BoardAnswer {
  if (refusal !== undefined) return { problem: `The agent cannot be asked: ${REFUSAL_TEXTS[refusal].detail}` };
  if (answer === undefined) return { problem: 'The agent does not answer' };
  if (answer.status === 503) return { problem: 'The agent has not read the devices yet' };
  if (answer.status === 200 && isBoard(answer.body)) return { board: answer.body };
  return { problem: 'What listens there is no agent of this version' };
}

/** Whether the agent is to be waited for: it answers, or it begins. */
export async function isAgentThere(ask: Ask): Promise<{ readonly isThere: boolean; readonly why?: string }> {
  const asked = await ask('/api/board');
  const { board, problem } = boardIn(asked);
  if (board !== undefined || asked.answer?.status === 503) return { isThere: true };
  const isSilent = asked.answer === undefined && asked.refusal === undefined;
  return { isThere: false, ...(isSilent ? {} : { why: problem as string }) };
}
