import { yamlText } from '../../config/yaml-text.ts';
import { nodeAnswer } from '../../health/journal/known-well.ts';
import { conditionLine } from '../../model/condition-text.ts';
import { shortened } from '../../model/one-line.ts';
import type { WholeBoard, WholeDevice } from '../../server/api/views.ts';
import { conditionsOf } from './conditions.ts';
import { RULE_VERSIONS, ruleChanges, TAINT_KEY } from './device-rules.ts';
import type { PublisherSettings } from './publisher.ts';
import { type AgentView, nodeViewOf } from './view.ts';

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
