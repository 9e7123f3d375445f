import { VIEW_SORTS, type ViewGroup, type ViewSort } from '../../board/view.ts';
import { UserError } from '../../errors.ts';
import { askFor } from '../agent-api.ts';
import type { CommandContext, Ending } from '../context.ts';
import { stopSignal } from '../signals.ts';
import { abilitiesOf } from '../terminal/abilities.ts';
import { openScreen } from '../terminal/screen.ts';
import { agentSource, isAgentThere } from './agent-source.ts';
import { TopApp } from './app.ts';
import type { BoardSource } from './source.ts';
import { FIRST_STATE, type TopState } from './state.ts';

/** Values of `--by`, and what they are on the page. */
const GROUPS: Readonly<Record<string, ViewGroup>> = { device: 'tree', pod: 'pod', node: 'topology' };

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Shows the board in the terminal until the user ends it. */
export async function runTop(context: CommandContext): Promise<Ending> {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) throw new UserError('terminal-absent', {});
  const screen = openScreen(stdin, stdout);
  let source: BoardSource | undefined;
  try {
    const app = new TopApp(screen, abilitiesOf(context.environment, context.options.color !== false), firstState(context.options));
    const ended = Promise.race([app.ended, crash(), stopSignal()]);
    const opening = sourceOf(context);
    void opening.then((opened) => {
      source = opened;
      app.follow(opened);
    }, app.fail);
    await ended;
  } finally {
    screen.close();
  }
  return { status: 0, isStuck: source === undefined ? false : !(await source.close()) };
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

async function sourceOf(context: CommandContext): Promise<BoardSource> {
  const { configuration, families, options } = context;
  const ask = askFor(context);
  const { isThere, why } = await isAgentThere(ask);
  if (isThere) return agentSource(configuration, ask);
  const [{ ownSource }, { agentSettings }, { readVersion }] = await Promise.all([
    import('./own-source.ts'),
    import('../settings.ts'),
    import('../version.ts'),
  ]);
  const own = await ownSource(agentSettings(configuration, families), { logger: SILENT, version: readVersion().version });
  if (options.read === true) return { ...own, name: 'read by this command' };
  return why === undefined ? own : { ...own, name: `${why}; read by this command` };
}

/** Without this, Node prints the error on the screen that is about to go. */
function crash(): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) process.once(event, reject);
  });
}
