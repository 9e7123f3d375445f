import { stateOptions } from '../../agent/options.ts';
import { hasOnlyFaultsOfWhole, parentKey, stateOf } from '../../board/device-view.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import type { SocketStats } from '../../model/agent-stats.ts';
import { nameWithPhase } from '../../model/condition-text.ts';
import { agentFaultText } from '../../model/known-well.ts';
import { controlSocket } from '../../server/control/control-socket.ts';
import { askAddress, REFUSAL_TEXTS } from '../agent-api.ts';
import { BOARD_PATH, boardIn, ownBoard } from '../board-answer.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

/** Findings of one kind. A node with a fault of its fabric can have hundreds of them. */
const MOST = 16;
const REMEDY = '"device-agent health -o text" prints every condition; docs/health.md links the pages that explain them.';

/** Reports devices that are not healthy: by the verdicts of the running agent, which have a history, or by one reading. */
export async function checkDevices({ collect, ask, families }: CheckContext): Promise<CheckResult[]> {
  const name = 'devices';
  const { devices, fault } = boardIn((await ask(BOARD_PATH)).answer?.body) ?? ownBoard(await collect(), families);
  if (devices.length === 0) return [skipped(name, 'there are no devices')];
  const unwell = devices.filter(({ health }) => health.state !== 'healthy');
  if (unwell.length === 0 && fault !== undefined)
    return [skipped(name, 'the running agent does not work, and what it says of them is old')];
  if (unwell.length === 0) return [ok(name, `${devices.length} ${devices.length === 1 ? 'device is' : 'devices are'} healthy`)];
  // A port that is down is down for each virtual function: one finding, and not hundreds.
  const [ofWhole, own] = [true, false].map((isOfWhole) => unwell.filter((device) => hasOnlyFaultsOfWhole(device) === isOfWhole));
  const findings = (own ?? []).map((device) => {
    const [worst] = device.health.conditions;
    const parts = (ofWhole ?? []).filter((one) => parentKey(one) === device.key).length;
    const also = parts === 0 ? '' : `, and ${parts} of its parts for the same reason`;
    const cause = worst === undefined ? 'There is no current reading of the device.' : `${nameWithPhase(worst)}: ${worst.message}`;
    const advice = worst === undefined ? undefined : REMEDY_TEXTS[worst.remedy];
    return finding(name, `${device.key} is ${stateOf(device)}${also}`, cause, advice === undefined ? REMEDY : `${advice} ${REMEDY}`);
  });
  return bounded(name, findings);
}

interface Problem {
  readonly message: string;
  readonly code?: string;
  readonly remedy?: string;
}

/** Parts of the answer of `/api/v1/status` that have problems. */
interface Status {
  readonly snapshot?: { readonly ageSeconds?: number };
  readonly config?: { readonly problem?: Problem };
}

const FAULT_REMEDY = 'Read its log, and restart it where no liveness probe does. "device-agent health --read" reads the hardware itself.';

/** Reports what only the running agent knows. The checks of the kubelet and of each family have its other problems: one fact is one finding. */
export async function checkRunningAgent({ ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'running-agent';
  const { answer, refusal } = await ask('/api/v1/status');
  if (refusal !== undefined) return [skipped(name, `it cannot be asked: ${REFUSAL_TEXTS[refusal].detail}`)];
  const status = (answer?.body ?? undefined) as Status | undefined;
  if (answer?.status !== 200 || status === undefined) return [skipped(name, 'no agent answers; this command read the hardware itself')];
  const { fault } = boardIn((await ask(BOARD_PATH)).answer?.body) ?? {};
  if (fault !== undefined)
    return [finding(name, `${agentFaultText(fault)}${ageOf(status)}`, 'No verdict and no value that it tells is current.', FAULT_REMEDY)];
  const { problem } = status.config ?? {};
  if (problem === undefined) return [ok(name, `its configuration has no problem${ageOf(status)}`)];
  const code = problem.code === undefined ? '' : ` [${problem.code}]`;
  const remedy = problem.remedy ?? "See the agent's log.";
  return [finding(name, `configuration: ${problem.message}${code}`, 'The running agent has this problem now.', remedy)];
}

function bounded(name: string, findings: readonly CheckResult[]): CheckResult[] {
  const more = findings.length - MOST;
  if (more <= 0) return [...findings];
  return [...findings.slice(0, MOST), finding(name, `and ${more} more`, 'Only the first ones are shown.', REMEDY)];
}

function ageOf({ snapshot }: Status): string {
  const seconds = snapshot?.ageSeconds;
  return typeof seconds === 'number' ? `; what it read is ${seconds.toFixed(1)} s old` : '';
}

const OFFER_CAUSE = 'Pods can get a device that is not healthy or not there, and fail, or sound devices are not used.';
const OFFER_REMEDY =
  'Find the other plugin of the resource on the node, and remove one of the two. docs/runbooks/agents.md#devicepluginofferdiffers';

/** Reports resources of which the kubelet offers other devices than the running agent serves. */
export async function checkOffers({ ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'plugin-offer';
  const { resources } = ((await ask('/api/v1/status')).answer?.body ?? {}) as { readonly resources?: unknown };
  const known = (Array.isArray(resources) ? resources : []).filter((one) => typeof one?.differing === 'number');
  if (known.length === 0) return [skipped(name, 'no running agent says what the kubelet offers of its resources')];
  const findings = known.flatMap(({ resource, differing, differingSince }) => {
    if (differing === 0) return [];
    const detail = `${resource}: the kubelet offers ${differing} ids otherwise than it was told, since ${differingSince}`;
    return [finding(name, detail, OFFER_CAUSE, OFFER_REMEDY)];
  });
  if (findings.length > 0) return findings.slice(0, MOST);
  return [ok(name, `the kubelet offers what it was told of ${known.map(({ resource }) => resource).join(', ')}`)];
}

const SOCKETS = 'sockets';
const SOCKET_REMEDY = 'The agent makes it again within two seconds when the cause is gone. docs/runbooks/agents.md#deviceagentsocketaway';

/** Checks that the sockets of the running agent are in their places, by its own words and by its answer at the configured address. */
export async function checkSockets({ configuration, ask, askProblem }: CheckContext): Promise<CheckResult[]> {
  const { answer } = await ask('/api/v1/status');
  const told = socketsIn(answer?.body);
  if (told !== undefined) {
    const findings = told.flatMap(({ name, path, problem }) =>
      problem === undefined ? [] : [finding(SOCKETS, `${name}: ${path}: ${problem}`, 'Its clients cannot ask the agent.', SOCKET_REMEDY)],
    );
    if (findings.length > 0) return findings;
    return [told.length === 0 ? skipped(SOCKETS, 'the agent has no sockets') : ok(SOCKETS, told.map(({ path }) => path).join(', '))];
  }
  const problem = askProblem();
  if (problem?.code === 'agent-untrusted') return [skipped(SOCKETS, 'they are not asked: see state-file')];
  if (problem !== undefined) return [finding(SOCKETS, problem.message, 'Commands of the node get no answer.', problem.remedy)];
  const { file } = configuration.section('state', stateOptions);
  if (file === '') return [skipped(SOCKETS, 'no agent answers')];
  const { answer: other } = await askAddress(configuration, '/api/v1/status');
  if (other?.agent === undefined) return [skipped(SOCKETS, 'no agent answers')];
  return [
    finding(
      SOCKETS,
      `an agent answers at its address (${other.agent}), and not at ${controlSocket(file)}`,
      'The agent uses another state file, or its socket is not in its place.',
      `Give this command the --state.file of the agent. ${SOCKET_REMEDY}`,
    ),
  ];
}

function socketsIn(body: unknown): readonly SocketStats[] | undefined {
  const { sockets } = (body ?? {}) as { readonly sockets?: unknown };
  return Array.isArray(sockets) ? sockets.filter((one) => typeof one?.path === 'string') : undefined;
}
