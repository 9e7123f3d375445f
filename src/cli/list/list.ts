import type { OwnReader } from '../../agent/agent.ts';
import { refreshOptions } from '../../agent/options.ts';
import { yamlText } from '../../config/yaml-text.ts';
import { UserError } from '../../errors.ts';
import { askFor, printAge, REFUSAL_TEXTS } from '../agent-api.ts';
import type { CommandContext, Ending } from '../context.ts';
import type { Output } from '../output.ts';
import { withProgress } from '../progress.ts';
import { agentSettings } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { warnOfSysfs } from '../sysfs-warning.ts';
import { widthOf } from '../terminal/frame.ts';
import { type Listed, listedBy, listJson, listPage } from './agent-list.ts';
import { snapshotTable, type TableForm } from './table.ts';

/** Prints what the running agent read, or reads everything without one; again and again with `-w`. */
export async function runList(context: CommandContext): Promise<Ending> {
  const { configuration, output, options, logger } = context;
  const form = formOf(options);
  const ask = askFor(context);
  const { listed, refusal } = await listedBy(ask);
  if (listed === undefined) {
    if (refusal !== undefined) logger.warn('the running agent cannot be asked; this is one reading', REFUSAL_TEXTS[refusal]);
    return await readAndPrint(context, form);
  }
  if (options.watch === true) {
    const { interval } = configuration.section('refresh', refreshOptions);
    let latest = listed;
    const table = async (): Promise<string> => {
      latest = (await listedBy(ask)).listed ?? latest;
      return snapshotTable(latest.table, fitted(form));
    };
    await repeated(table, interval, output);
    return { status: 0 };
  }
  if (options.output === 'prom') {
    await output.writePage(await listPage(ask, String(configuration.setting('web.telemetry-path').value)));
    printAge(listed.takenAt);
    return { status: 0 };
  }
  await output.write(await written(listed, options.output, form));
  if (options.output !== 'json' && options.output !== 'yaml') printAge(listed.takenAt);
  return { status: 0 };
}

async function readAndPrint(context: CommandContext, form: TableForm): Promise<Ending> {
  const { configuration, families, logger, output, options } = context;
  const [{ collectOnce, openReader }, { readVersion }, { snapshotView }] = await Promise.all([
    import('../../agent/agent.ts'),
    import('../version.ts'),
    import('../../server/api/views.ts'),
  ]);
  warnOfSysfs(context);
  const settings = agentSettings(configuration, families);
  const parts = { logger, version: readVersion().version };
  if (options.watch === true) {
    const reader: OwnReader = await openReader(settings, parts);
    const { interval } = configuration.section('refresh', refreshOptions);
    const table = async (): Promise<string> => snapshotTable(await withProgress('reading the devices', reader.read()), fitted(form));
    await repeated(table, interval, output);
    return { status: 0, isStuck: !(await reader.close()) };
  }
  const { snapshot, page, ended } = await withProgress('reading the devices', collectOnce(settings, parts));
  if (options.output === 'prom') await output.writePage(page);
  else await output.write(await written({ table: snapshot, json: () => snapshotView(snapshot) }, options.output, form));
  return { status: 0, isStuck: !ended };
}

/** A terminal may be resized while the command runs. */
const fitted = (form: TableForm): TableForm => ({ ...form, columns: process.stdout.isTTY ? process.stdout.columns : undefined });

/** Options that shape a table are refused where there is none: a script would get something else than it asked for. */
function formOf({ output, by = 'device', watch }: CommandContext['options']): TableForm {
  const isTable = output === 'table' || output === 'wide';
  if (!isTable && by !== 'device') throw new UserError('flag-invalid', { flag: '--by', problem: `cannot be used with -o ${output}` });
  if (!isTable && watch === true) throw new UserError('flag-invalid', { flag: '--watch', problem: `cannot be used with -o ${output}` });
  return { isWide: output === 'wide', by: by === 'pod' ? 'pod' : 'device' };
}

async function written({ table, json }: Pick<Listed, 'table' | 'json'>, format: unknown, form: TableForm): Promise<string> {
  switch (format) {
    case 'json':
      return listJson(json());
    case 'yaml':
      return await yamlOf(JSON.parse(listJson(json())));
    default:
      return snapshotTable(table, fitted(form));
  }
}

async function yamlOf(value: unknown): Promise<string> {
  const { Document } = await import('yaml');
  return await yamlText(new Document(value, { aliasDuplicateObjects: false }));
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
