import { refreshOptions } from '../../agent/options.ts';
import { yamlText } from '../../config/yaml-text.ts';
import { UserError } from '../../errors.ts';
import { allocationsView, jsonText, type WholeBoard } from '../../server/api/views.ts';
import { type Ask, askFor, printAge, REFUSAL_TEXTS, type Refusal } from '../agent-api.ts';
import { BOARD_PATH, boardIn, ownBoard } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';
import { readOnce, warnOfRefusal } from '../one-reading.ts';
import type { Output } from '../output.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { widthOf } from '../terminal/frame.ts';
import { boardText, type TextForm } from '../top/board-text.ts';
import { GROUPS } from '../top/items.ts';
import { readVersion } from '../version.ts';

/** Prints what the running agent read, or reads everything without one; again and again with `-w`. */
export async function runList(context: CommandContext): Promise<Ending> {
  const { configuration, output, options } = context;
  const form = formOf(options);
  const format = String(options.output);
  const ask = askFor(context);
  const { told, refusal } = await toldBy(ask, format);
  if (told === undefined) {
    return await readAndPrint(context, form, refusal);
  }
  if (options.watch === true) {
    const { interval } = configuration.section('refresh', refreshOptions);
    let latest = told;
    const table = async (): Promise<string> => {
      latest = (await toldBy(ask, format)).told ?? latest;
      return boardText(latest.board, fitted(form));
    };
    await repeated(table, interval, output);
    return { status: 0 };
  }
  if (format === 'prom') await output.writePage(await pageOf(ask, String(configuration.setting('web.telemetry-path').value)));
  else await output.write(await written(told, format, form));
  if (!isData(format)) printAge(told.board.takenAt);
  return { status: 0 };
}

/** What there is to print. `allocations`: the answer about them, where it is printed. */
interface ListContent {
  readonly board: WholeBoard;
  readonly allocations?: object;
}

const isData = (format: string): boolean => format === 'json' || format === 'yaml';

/** Answers of the agent are about one snapshot when they have the same time. A refresh can come between two requests. */
const MOST_TRIES = 3;

/** Asks the agent. Throws while it has no snapshot. */
async function toldBy(ask: Ask, format: string): Promise<{ readonly told?: ListContent; readonly refusal?: Refusal | undefined }> {
  for (let tries = 1; ; tries += 1) {
    const { answer, refusal } = await ask(isData(format) ? '/api/v1/devices' : BOARD_PATH);
    if (answer?.status === 503) throw new UserError('agent-not-ready', {});
    const board = boardIn(answer?.body);
    if (board === undefined) return { refusal };
    if (!isData(format)) return { told: { board } };
    const allocations = (await ask('/api/v1/allocations')).answer?.body as { readonly takenAt?: unknown; readonly allocations?: unknown };
    if (!Array.isArray(allocations?.allocations)) return {};
    if (board.takenAt === allocations.takenAt || tries === MOST_TRIES) return { told: { board, allocations } };
  }
}

const OWN_METRIC = /^(?:# (?:HELP|TYPE|UNIT) )?(?:device_agent_|process_|nodejs_)/;

/** The metrics of devices and containers, without those of the agent. */
async function pageOf(ask: Ask, path: string): Promise<string> {
  const { answer, refusal } = await ask(path);
  if (answer?.status === 200) {
    const lines = answer.text.split('\n').filter((line) => !OWN_METRIC.test(line));
    return lines.join('\n').replaceAll(/\n{3,}/g, '\n\n');
  }
  const problem = refusal === undefined ? `it answered ${answer?.status ?? 'nothing'}` : REFUSAL_TEXTS[refusal].detail;
  throw new UserError('agent-page', { path, problem });
}

async function readAndPrint(context: CommandContext, form: TextForm, refusal: Refusal | undefined): Promise<Ending> {
  const { configuration, families, logger, output, options } = context;
  warnOfSysfs(context);
  if (options.watch === true) {
    warnOfRefusal(context, refusal);
    const { openAgent } = await import('../../agent/agent.ts');
    const agent = await openAgent(agentSettings(configuration, families), { logger, version: readVersion().version });
    const { interval } = configuration.section('refresh', refreshOptions);
    const table = async (): Promise<string> =>
      boardText(ownBoard(await withProgress('reading the devices', agent.read()), families), fitted(form));
    await repeated(table, interval, output);
    return { status: 0, isStuck: !(await agent.close()) };
  }
  const format = String(options.output);
  const { snapshot, page, ended } = await withProgress('reading the devices', readOnce(context, refusal));
  if (format === 'prom') await output.writePage(page);
  else
    await output.write(await written({ board: ownBoard(snapshot, families, true), allocations: allocationsView(snapshot) }, format, form));
  return { status: 0, isStuck: !ended };
}

/** A terminal may be resized while the command runs. */
const fitted = (form: TextForm): TextForm => ({ ...form, columns: process.stdout.isTTY ? process.stdout.columns : undefined });

/** Options that shape a table are refused where there is none: a script would get something else than it asked for. */
function formOf({ output, by = 'device', watch }: CommandContext['options']): TextForm {
  const isTable = output === 'table' || output === 'wide';
  if (!isTable && by !== 'device') throw new UserError('flag-invalid', { flag: '--by', problem: `cannot be used with -o ${output}` });
  if (!isTable && watch === true) throw new UserError('flag-invalid', { flag: '--watch', problem: `cannot be used with -o ${output}` });
  return { isWide: output === 'wide', group: GROUPS[String(by)] ?? 'tree' };
}

async function written({ board, allocations }: ListContent, format: string, form: TextForm): Promise<string> {
  if (!isData(format)) return boardText(board, fitted(form));
  const text = jsonText({ ...board, ...allocations }, 2);
  if (format === 'json') return text;
  return await yamlText(JSON.parse(text));
}

/** Prints a text again whenever it changed, until a signal arrives or the reader closes the output. */
async function repeated(make: () => Promise<string>, intervalMs: number, output: Output): Promise<void> {
  const terminal = process.stdout.isTTY ? process.stdout : undefined;
  const ended = Promise.race([stopSignal(), new Promise((resolve) => output.onClosed(() => resolve('closed')))]).then(
    (): typeof ENDED => ENDED,
  );
  let last: string | undefined;
  let paint = (): Promise<void> => Promise.resolve();
  terminal?.on('resize', () => void paint());
  for (;;) {
    const text = await Promise.race([make(), ended]);
    if (text === ENDED) return;
    if (text !== last) {
      last = text;
      const time = new Date().toISOString();
      paint = () => (terminal === undefined ? output.write(`${time}\n${text}\n`) : output.overwrite(fitting(`${time}\n${text}`, terminal)));
      await paint();
    }
    if ((await Promise.race([pause(intervalMs), ended])) === ENDED) return;
  }
}

const ENDED: unique symbol = Symbol('ended');

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A table that is larger than the terminal is cut, because it would scroll. */
function fitting(text: string, { columns, rows }: { readonly columns: number; readonly rows: number }): readonly string[] {
  const lines = text.trimEnd().split('\n');
  const room = rows - 1;
  const shown =
    lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines; "device-agent top" scrolls`];
  return shown.map((line) => (widthOf(line) <= columns ? line : `${[...line].slice(0, columns - 1).join('')}…`));
}
