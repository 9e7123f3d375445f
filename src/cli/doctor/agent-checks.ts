import { parentKey, stateOf } from '../../board/device-view.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import { nameWithPhase } from '../../model/condition-text.ts';
import { REFUSAL_TEXTS } from '../agent-api.ts';
import { BOARD_PATH, boardIn, ownBoard } from '../board-answer.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

/** Findings of one kind. A node with a fault of its fabric can have hundreds of them. */
const MOST = 16;
const REMEDY = '"device-agent health -o text" prints every condition; docs/health.md links the pages that explain them.';

/** Reports devices that are not healthy: by the verdicts of the running agent, which have a history, or by one reading. */
export async function checkDevices({ collect, ask, families }: CheckContext): Promise<CheckResult[]> {
  const name = 'devices';
  const { devices } = boardIn((await ask(BOARD_PATH)).answer?.body) ?? ownBoard(await collect(), families);
  if (devices.length === 0) return [skipped(name, 'there are no devices')];
  const unwell = devices.filter(({ health }) => health.state !== 'healthy');
  if (unwell.length === 0) return [ok(name, `${devices.length} ${devices.length === 1 ? 'device is' : 'devices are'} healthy`)];
  // A port that is down is down for each virtual function: one finding, and not hundreds.
  const [ofWhole, own] = [true, false].map((isOfWhole) =>
    unwell.filter(({ health }) => (health.conditions[0]?.ofWhole !== undefined) === isOfWhole),
  );
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

/** Reports what only the running agent knows. The checks of the kubelet and of each family have its other problems: one fact is one finding. */
export async function checkRunningAgent({ ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'running-agent';
  const { answer, refusal } = await ask('/api/v1/status');
  if (refusal !== undefined) return [skipped(name, `it cannot be asked: ${REFUSAL_TEXTS[refusal].detail}`)];
  const status = (answer?.body ?? undefined) as Status | undefined;
  if (answer?.status !== 200 || status === undefined) return [skipped(name, 'no agent answers; this command read the hardware itself')];
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
