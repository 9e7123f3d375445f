import { yamlText } from '../../config/yaml-text.ts';
import { UserError } from '../../errors.ts';
import { endsWithin, systemClock } from '../../host/clock.ts';
import { createChangeLog } from '../../log/changes.ts';
import { conditionLine } from '../../model/condition-text.ts';
import { nodeAnswer } from '../../model/known-well.ts';
import { shortened } from '../../model/one-line.ts';
import type { WholeBoard, WholeDevice } from '../../server/api/views.ts';
import { askFor, openStream, REFUSAL_TEXTS } from '../agent-api.ts';
import { BOARD_PATH, boardIn } from '../board-answer.ts';
import type { CommandContext, Ending } from '../context.ts';
import { nodeName } from '../settings.ts';
import { stopSignal } from '../signals.ts';
import { readVersion } from '../version.ts';
import { AgentFeed } from './agent-feed.ts';
import { conditionsOf } from './conditions.ts';
import { DeviceRules, RULE_VERSIONS, ruleChanges, TAINT_KEY } from './device-rules.ts';
import { type Kubernetes, kubernetesAt, serverAddress } from './kubernetes.ts';
import { NodeConditions } from './node-conditions.ts';
import { NodeTaint } from './node-taint.ts';
import { type PublishOptions, publishOptions, publishSection } from './options.ts';
import { NotServed, Refused } from './pace.ts';
import { Publisher, type PublisherSettings } from './publisher.ts';
import { type AgentView, nodeViewOf } from './view.ts';

/** A request that runs, the time between two patches, and the last two requests. A pod has 30 seconds. */
const STOP_MS = 25_000;

/** Writes what the agent says to the API server until a stop signal, or removes it. */
export async function runPublish(context: CommandContext): Promise<Ending> {
  const { configuration, families, logger, environment } = context;
  const options = configuration.section(publishSection.path, publishOptions);
  if (context.options.dryRun === true) return await dryRun(context, { ...options, node: nodeName(), families });
  const server = serverAddress(options['api-server'], environment);
  if (server === undefined) throw new UserError('publish-no-server', {});
  const kubernetes = kubernetesAt(server, options);
  const settings = { ...options, node: nodeName(), families, resyncMs: options.resync };
  if (context.options.withdraw === true) return await withdraw(context, kubernetes, settings);
  const signal = stopSignal(['SIGTERM', 'SIGINT']);
  const changes = createChangeLog(logger);
  const ask = askFor(context);
  const parts = { kubernetes, ask, clock: systemClock, logger, changes, random: Math.random };
  const publisher: Publisher = new Publisher({ ...parts, view: () => feed.view() }, settings);
  const feed = new AgentFeed({ ...parts, open: () => openStream(context, '/api/health/watch'), heard: () => publisher.wake() });
  logger.info('publishing', { version: readVersion().version, node: settings.node, server: server.href });
  feed.start();
  publisher.wake();
  logger.info('stopping', { signal: await signal });
  feed.stop();
  await endsWithin(publisher.stop(), STOP_MS, systemClock);
  return { status: 0 };
}

/** Prints the taint rules of devices as documents. The rest is comments: `kubectl apply` cannot write the status of a node. */
async function dryRun(context: CommandContext, settings: Omit<PublisherSettings, 'resyncMs'>): Promise<Ending> {
  const { output } = context;
  const { answer, refusal } = await askFor(context)(BOARD_PATH);
  if (answer?.status === 503) throw new UserError('agent-not-ready', {});
  const board = boardIn(answer?.body);
  if (board === undefined)
    throw new UserError('publish-no-agent', { problem: refusal === undefined ? 'no agent answers' : REFUSAL_TEXTS[refusal].detail });
  await output.write(await dryRunText(board, settings));
  return { status: 0 };
}

async function withdraw(
  { output, logger }: CommandContext,
  kubernetes: Kubernetes,
  { node, 'device-taint-rules': effect }: PublishOptions & { readonly node: string },
): Promise<Ending> {
  const parts = { kubernetes, clock: systemClock, logger, node, resyncMs: 0 };
  const rules = new DeviceRules(kubernetes, systemClock, { ...parts, effect: 'None', families: [] });
  const failed = (error: unknown): never => {
    throw new UserError('withdraw-failed', { problem: (error as Error).message }, error);
  };
  const { removed, kept } = await new NodeConditions(parts).withdraw().catch(failed);
  let unseen = '';
  const count = await rules.withdraw().catch((error: unknown) => {
    // A token without rights on rules made none.
    if (error instanceof Refused && error.status === 403) return 0;
    if (!(error instanceof NotServed)) return failed(error);
    // A version of the cluster that served them may have stored some.
    if (effect !== 'off') unseen = `taint rules of devices were not looked for: ${error.message}\n`;
    return 0;
  });
  const taints = await new NodeTaint({ ...parts, effect: 'off' }).withdraw().catch(failed);
  if (kept > 0) failed(new Error(`${kept} conditions of the node ${node} also belong to another program`));
  await output.write(`removed from the node ${node}: ${removed} conditions, ${count} taint rules of devices, ${taints} taints\n${unseen}`);
  return { status: 0 };
}

const COMMENT_BYTES = 1_024;

/** What a publisher would write on a node without any object of it. `kubectl apply` takes the text. */
export async function dryRunText(board: WholeBoard, settings: Omit<PublisherSettings, 'resyncMs'>): Promise<string> {
  const { node, 'device-taint-rules': effect, 'node-taint': taint } = settings;
  const view = viewOf(board);
  const conditions = conditionsOf(view).map(({ type, status, reason, message }) =>
    comment(`${node}: ${type} ${status} (${reason}): ${message}`),
  );
  const isTainted = taint !== 'off' && nodeAnswer('DevicesUnhealthy', nodeViewOf(view)).status === 'True';
  return [
    ...conditions,
    ...(isTainted ? [comment(`${node}: taint ${TAINT_KEY}:${taint}`)] : []),
    ...(await rulesText(view, settings, effect)),
  ].join('');
}

async function rulesText(
  view: AgentView,
  { node, families }: Omit<PublisherSettings, 'resyncMs'>,
  effect: string,
): Promise<readonly string[]> {
  const sick = view.board.devices.filter(({ health }) => health.state === 'unhealthy');
  if (effect === 'off') return [comment('no taint rules of devices: --publish.device-taint-rules is off')];
  const version = RULE_VERSIONS[0];
  const { add } = ruleChanges(view, [], { node, effect, families, version, isWorkedOn: false });
  const before = `# Before Kubernetes 1.37 replace ${version}: by v1beta2 (1.36), by v1alpha3 (1.33 to 1.35).\n`;
  const textsOf = async (device: WholeDevice): Promise<readonly string[]> => {
    const [worst] = device.health.conditions;
    const reason = comment(`${device.key}: ${worst === undefined ? 'unhealthy' : conditionLine(worst)}`);
    const own = add.filter(({ metadata }) => Object.values(metadata.annotations).includes(device.key));
    if (own.length === 0)
      return [reason, comment(`${device.key} has no rule: no claim holds it, and no known DRA driver has a name for it`)];
    return await Promise.all(own.map(async (rule) => `---\n${reason}${await yamlText(rule)}`));
  };
  return sick.length === 0 ? [] : [before, ...(await Promise.all(sick.map(textsOf))).flat()];
}

/** The verdicts as the feed of the agent gives them while the agent works. */
function viewOf(board: WholeBoard): AgentView {
  const stateOf = { healthy: 'HEALTHY', degraded: 'HEALTHY', unhealthy: 'UNHEALTHY', unknown: 'UNKNOWN' } as const;
  const feed = board.devices.map(({ family, id, health }) => ({ family, id, state: stateOf[health.state] }));
  return { feed, board, families: board.families };
}

const comment = (text: string): string => `# ${shortened(text, COMMENT_BYTES)}\n`;
