import { VIEW_SORTS, type ViewSort } from '../../board/view.ts';
import { UserError } from '../../errors.ts';
import { type Ask, type Asked, askFor, REFUSAL_TEXTS, stateFileOf } from '../agent-api.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';
import { stopSignal } from '../signals.ts';
import { abilitiesOf } from '../terminal/abilities.ts';
import { openScreen } from '../terminal/screen.ts';
import type { BoardAnswer, BoardSource } from './app.ts';
import { TopApp } from './app.ts';
import { detailOf, deviceTrendsIn } from './detail.ts';
import { GROUPS } from './items.ts';
import { FIRST_STATE, type TopState } from './state.ts';

/** Shows the board in the terminal until the user ends it. */
export async function runTop(context: CommandContext): Promise<Ending> {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) throw new UserError('terminal-absent', {});
  const screen = openScreen(stdin, stdout);
  let told = '';
  try {
    const app = new TopApp(screen, abilitiesOf(context.environment, context.options.color !== false), firstState(context.options));
    const ended = Promise.race([app.ended, crash(), stopSignal()]);
    const opening = sourceOf(context, (text) => {
      told = text;
    });
    void opening.then((opened) => app.follow(opened), app.fail);
    await ended;
  } finally {
    screen.close();
    // Whom the command asked; on the screen it would be painted over.
    process.stderr.write(told);
  }
  return { status: 0 };
}

/** The state that the flags ask for. */
function firstState({ by, sort, filter }: CommandContext['options']): TopState {
  return {
    ...FIRST_STATE,
    ...(typeof by === 'string' ? { group: GROUPS[by] ?? FIRST_STATE.group } : {}),
    ...(VIEW_SORTS.includes(sort as ViewSort) ? { sort: sort as ViewSort } : {}),
    ...(typeof filter === 'string' ? { filter } : {}),
  };
}

async function sourceOf(context: CommandContext, tell: (text: string) => void): Promise<BoardSource> {
  const ask = askFor(context, tell);
  // What the user can change ends the command. An agent that is away can come.
  await ask(BOARD_PATH);
  const address = stateFileOf(context) === undefined ? `at ${context.configuration.setting('web.listen-address').value}` : 'of this node';
  return agentSource(`agent ${address}`, ask);
}

/** Without this, Node prints the error on the screen that is about to go. */
function crash(): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.once(event, reject);
  });
}

/** As often as the page gets news. The agent answers from its snapshot, and reads no hardware for it. */
const INTERVAL_MS = 2_000;

/** Boards of the agent that runs on the node. */
function agentSource(name: string, asking: Ask): BoardSource {
  const ask: Ask = (path) => asking(path).catch(() => ({}));
  return {
    name,
    intervalMs: INTERVAL_MS,
    async board(hasTrends) {
      const [asked, trends] = await Promise.all([ask(BOARD_PATH), hasTrends ? ask('/api/v1/devices/trends') : undefined]);
      const answer = boardOf(asked);
      return answer.board === undefined || trends === undefined ? answer : { ...answer, trends: deviceTrendsIn(trends.answer?.body) };
    },
    async detail(family, id) {
      const path = `/api/v1/devices/${encodeURIComponent(family)}/${encodeURIComponent(id)}`;
      const [device, events, trends] = await Promise.all([ask(path), ask('/api/v1/events'), ask(`${path}/trends`)]);
      const { answer } = device;
      return answer?.status === 200 ? detailOf(answer.body, events.answer?.body, `${family}/${id}`, trends.answer?.body) : undefined;
    },
  };
}

/** The answer of an agent, or the reason why there is none. */
function boardOf({ answer, refusal }: Asked): BoardAnswer {
  if (refusal !== undefined) return { problem: `The agent cannot be asked: ${REFUSAL_TEXTS[refusal].detail}` };
  if (answer === undefined) return { problem: 'The agent does not answer' };
  if (answer.status === 503) return { problem: 'The agent has not read the devices yet' };
  const board = boardIn(answer.body);
  return board !== undefined ? { board } : { problem: 'What listens there is no agent of this version' };
}
