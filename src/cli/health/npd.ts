import { UserError } from '../../errors.ts';
import { LINE_BYTES, NODE_EVENT, type NodeProblem, type NodeQuestion, nodeCondition } from '../../health/journal/node-problem.ts';
import { shortened } from '../../model/one-line.ts';
import { type Ask, askFor, REFUSAL_TEXTS } from '../agent-api.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';

/** Options of `health` that have no meaning for one condition. */
const OTHERS = ['device', 'read'] as const;

/**
 * Answers one rule of node-problem-detector. Only the running agent is asked: one reading has no history, and rules run every minute.
 * Whatever prevents an answer is the status 2, with one line that says what it was.
 */
export async function runNodeCondition(context: CommandContext): Promise<Ending> {
  const { options } = context;
  const other = OTHERS.find((name) => options[name] !== undefined);
  if (other !== undefined) throw new UserError('flag-invalid', { flag: `--${other}`, problem: 'cannot be used with --npd' });
  if ((options.output ?? 'line') !== 'line') throw new UserError('flag-invalid', { flag: '--output', problem: 'must be line with --npd' });
  const { exitCode, message } = await answered(options.npd as NodeQuestion, askFor(context));
  await context.output.write(`${shortened(message, LINE_BYTES)}\n`);
  return { status: exitCode };
}

async function answered(question: NodeQuestion, ask: Ask): Promise<NodeProblem> {
  const silent = (message: string): NodeProblem => ({ exitCode: question === NODE_EVENT ? 0 : 2, message });
  try {
    // Snapshots can stop while the API still answers with the last one.
    const alive = await ask('/healthz');
    if (alive.refusal !== undefined) return silent(`the agent cannot be asked: ${REFUSAL_TEXTS[alive.refusal].detail}`);
    if (alive.answer === undefined) return silent('no agent answers');
    if (alive.answer.status !== 200) return silent(`the agent does not work: ${alive.answer.text.trim()}`);
    const { answer, refusal } = await ask(BOARD_PATH);
    if (refusal !== undefined) return silent(`the agent cannot be asked: ${REFUSAL_TEXTS[refusal].detail}`);
    if (answer?.status === 503) return silent('the agent has not read the hardware yet');
    const board = boardIn(answer?.body);
    return board === undefined ? silent('no agent answers') : nodeCondition(question, board, Date.parse(board.takenAt));
  } catch (error) {
    if (error instanceof UserError) return silent(error.message);
    throw error;
  }
}
