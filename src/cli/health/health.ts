import { conditionText, healthNotes } from '../../board/condition-text.ts';
import { conditionsOf, sinceOf, stateOf } from '../../board/device-view.ts';
import { isCalled, namesOf } from '../../board/name.ts';
import { nearestHint } from '../../config/nearest.ts';
import { UserError } from '../../errors.ts';
import { LINE_BYTES, nodeProblem } from '../../health/journal/node-problem.ts';
import { defined } from '../../model/defined.ts';
import { durationText } from '../../model/duration.ts';
import type { FamilyReading } from '../../model/family-reading.ts';
import { shortened, visible } from '../../model/one-line.ts';
import { jsonText, type WholeBoard, type WholeDevice } from '../../server/api/views.ts';
import { askFor, printAge } from '../agent-api.ts';
import { BOARD_PATH, boardIn, ownBoard } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';
import { readOnce } from '../one-reading.ts';
import { withProgress } from '../progress.ts';

interface Judged {
  /** Undefined when the running agent has not read anything yet. */
  readonly board: WholeBoard | undefined;
  readonly source: 'agent' | 'one reading';
  readonly isStuck: boolean;
}

interface Answer {
  readonly status: 0 | 1 | 2;
  readonly message: string;
  readonly devices: readonly WholeDevice[];
}

/** In this protocol the status 1 means unhealthy hardware. Every other failure is 2, "unknown". */
export async function runHealth(context: CommandContext): Promise<Ending> {
  if (context.options.npd !== undefined) return await (await import('./npd.ts')).runNodeCondition(context);
  try {
    const judged = await withProgress('reading the health', judge(context));
    const wanted = context.options.device;
    const answer = answerFor(judged, typeof wanted === 'string' ? wanted : undefined);
    const { output = process.stdout.isTTY ? 'text' : 'line' } = context.options;
    await context.output.write(written(answer, judged, output));
    if (output === 'text') printAge(judged.board?.takenAt);
    return { status: answer.status, isStuck: judged.isStuck };
  } catch (error) {
    if (error instanceof UserError) throw error;
    context.logger.error('health could not be determined', { error });
    await context.output.write(`${shortened('health could not be determined; see the log', LINE_BYTES)}\n`);
    return { status: 2 };
  }
}

/** Returns the verdicts of the running agent, or those of one reading. */
async function judge(context: CommandContext): Promise<Judged> {
  const { answer, refusal } = await askFor(context)(BOARD_PATH);
  const board = boardIn(answer?.body);
  if (board !== undefined || answer?.status === 503) return { board, source: 'agent', isStuck: false };
  const { snapshot, ended } = await readOnce(context, refusal);
  return { board: ownBoard(snapshot, context.families), source: 'one reading', isStuck: !ended };
}

function answerFor({ board, source }: Judged, wanted: string | undefined): Answer {
  if (board === undefined) return { status: 2, message: 'the agent has not read the hardware yet', devices: [] };
  const devices = wanted === undefined ? board.devices : board.devices.filter((device) => isCalled(device, wanted));
  if (wanted !== undefined && devices.length === 0) {
    return { status: 2, message: `no device ${wanted}${nearestHint(wanted, board.devices.flatMap(namesOf))}`, devices: [] };
  }
  const { exitCode, message } = nodeProblem(
    wanted === undefined ? board : defined({ devices, families: familiesOf(board, devices), fault: board.fault }),
  );
  const isShort = exitCode === 0 && source !== 'agent';
  return { status: exitCode, message: isShort ? `${message} (one reading)` : message, devices };
}

/** A question about one device is answered by its own family, and by no other device. */
const familiesOf = ({ families }: WholeBoard, devices: readonly WholeDevice[]): readonly FamilyReading[] =>
  families
    .filter(({ family }) => devices.some((device) => device.family === family))
    .map(({ family, complete, problem }) => defined({ family, complete, problem }));

function written({ status, message, devices }: Answer, { board, source }: Judged, format: unknown): string {
  if (format === 'json') return jsonText({ status, message, source, takenAt: board?.takenAt, devices }, 2);
  const line = `${shortened(message, LINE_BYTES)}\n`;
  const nowMs = Date.parse(board?.now ?? '');
  return format === 'text' ? line + devices.map((device) => paragraph(device, nowMs)).join('') : line;
}

/** Formats the state of a device, and below it each condition with what to do. */
function paragraph(device: WholeDevice, nowMs: number): string {
  const since = sinceOf(device);
  const age = since === undefined ? '' : ` for ${durationText(nowMs - Date.parse(since))}`;
  const conditions = conditionsOf(device).flatMap((condition) => {
    const { name, note, sentences, advice } = conditionText(device, condition, nowMs);
    const more = [...sentences, ...(advice === undefined ? [] : [`To do (${condition.remedy}): ${advice}`])];
    return [`    ${name}: ${note}`, ...more.map((text) => `      ${text}`)];
  });
  const named = device.name === device.id ? '' : ` (${device.name})`;
  const rows = [
    `  ${device.key}${named} ${stateOf(device)}${age}`,
    ...conditions,
    ...healthNotes(device.health).map((note) => `    ${note}`),
  ];
  return rows.map((row) => `${visible(row)}\n`).join('');
}
