import { podDoubt } from '../board/board.ts';
import { UserError } from '../errors.ts';
import { oneLine } from '../model/one-line.ts';
import { type Ask, askFor, printAge, type Refusal } from './agent-api.ts';
import { BOARD_PATH, boardIn, ownBoard } from './board-answer.ts';
import type { CommandContext, Ending } from './context.ts';
import { readOnce } from './one-reading.ts';
import { podOption } from './pod-option.ts';
import { withProgress } from './progress.ts';

interface Explained {
  readonly lines: readonly string[];
  readonly takenAt?: string;
}

/** Says how near the devices of a pod are to each other and to its CPUs, with reasons. Asks the agent, or reads once without one. */
export async function runExplain(context: CommandContext): Promise<Ending> {
  const { options, output } = context;
  const ask = askFor(context);
  const name = options.name ?? options.pod;
  if (typeof name !== 'string') throw new UserError('usage-invalid', { problem: await namesNone(ask), command: 'device-agent explain' });
  const whole = name.includes('/') ? name : await wholeName(ask, name);
  const { namespace, pod } = podOption(whole, options.name === undefined ? '--pod' : 'NAME');
  const { answer, refusal } = await ask(`/api/v1/explain/${namespace}/${pod}`);
  const { code, message } = (answer?.body as { error?: { code?: string; message?: string } } | undefined | null)?.error ?? {};
  if (code === 'pod-not-known') throw new UserError('pod-not-known', { pod: `${namespace}/${pod}`, problem: String(message) });
  if (answer?.status === 503) throw new UserError('agent-not-ready', {});
  const asked = answer?.body as Partial<Explained> | undefined | null;
  const isUnknown = answer?.status === 404 && code === 'pod-unknown';
  const found = isUnknown
    ? undefined
    : Array.isArray(asked?.lines)
      ? (asked as Explained)
      : await withProgress('reading the devices', ownLines(context, refusal, namespace, pod));
  const lines = found?.lines ?? [`No container of ${namespace}/${pod} holds a device on this node.`];
  await output.write(
    options.output === 'json' ? `${JSON.stringify({ takenAt: found?.takenAt, lines }, null, 2)}\n` : `${lines.map(oneLine).join('\n')}\n`,
  );
  if (options.output !== 'json') printAge(found?.takenAt);
  return { status: found === undefined ? 1 : 0 };
}

const MOST_NAMED = 10;

/** `namespace/pod` of those that hold devices, as the agent knows them. */
async function podsOf(ask: Ask): Promise<readonly string[]> {
  const devices = boardIn((await ask(BOARD_PATH)).answer?.body)?.devices ?? [];
  return [...new Set(devices.flatMap(({ holders }) => holders.map(({ namespace, pod }) => `${namespace}/${pod}`)))].sort();
}

/** The name of a pod without its namespace is enough where one pod has it. */
async function wholeName(ask: Ask, name: string): Promise<string> {
  const [only, ...others] = (await podsOf(ask)).filter((pod) => pod.endsWith(`/${name}`));
  if (only !== undefined && others.length === 0) return only;
  const problem = only === undefined ? await namesNone(ask) : `several pods are called ${name}: ${[only, ...others].join(', ')}`;
  throw new UserError('usage-invalid', { problem, command: 'device-agent explain' });
}

/** The pods that could be meant. */
async function namesNone(ask: Ask): Promise<string> {
  const pods = await podsOf(ask);
  if (pods.length === 0) return 'name a pod as NAMESPACE/NAME, such as training/worker-0';
  const more = pods.length > MOST_NAMED ? ` and ${pods.length - MOST_NAMED} more` : '';
  return `name a pod; these hold devices: ${pods.slice(0, MOST_NAMED).join(', ')}${more}`;
}

async function ownLines(
  context: CommandContext,
  refusal: Refusal | undefined,
  namespace: string,
  pod: string,
): Promise<Explained | undefined> {
  const { snapshot } = await readOnce(context, refusal);
  const { explainPod } = await import('../board/explain.ts');
  const lines = explainPod(namespace, pod, snapshot);
  const problem = podDoubt(ownBoard(snapshot, context.families));
  if (lines === undefined && problem !== undefined) throw new UserError('pod-not-known', { pod: `${namespace}/${pod}`, problem });
  return lines && { lines };
}
