import { REFUSAL_TEXTS } from '../agent-api.ts';
import { type ApiDevice, devicesIn } from '../api-device.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

/** Findings of one kind. A node with a fault of its fabric can have hundreds of them. */
const MOST = 16;
const REMEDY = '"device-agent health -o text" prints every condition; docs/health.md links the pages that explain them.';

/** Reports devices that are not healthy: by the verdicts of the running agent, which have a history, or by one reading. */
export async function checkDevices({ collect, ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'devices';
  const { answer } = await ask('/api/v1/devices');
  let devices = devicesIn(answer?.body);
  if (devices === undefined) {
    const [snapshot, { devicesView }] = await Promise.all([collect(), import('../../server/api/views.ts')]);
    devices = devicesIn(JSON.parse(JSON.stringify(devicesView(snapshot), (_, value) => (typeof value === 'bigint' ? 0 : value)))) ?? [];
  }
  if (devices.length === 0) return [skipped(name, 'there are no devices')];
  const unwell = devices.filter(({ health }) => health.state !== 'healthy');
  if (unwell.length === 0) return [ok(name, `${devices.length} ${devices.length === 1 ? 'device is' : 'devices are'} healthy`)];
  // A port that is down is down for each virtual function: one finding, and not hundreds.
  const named = new Set(unwell.map(({ family, id, health }) => `${family}/${id} ${health.conditions[0]?.type}`));
  const isOfWhole = ({ family, parent, health }: ApiDevice): boolean =>
    parent !== undefined && health.conditions.length > 0 && named.has(`${family}/${parent} ${health.conditions[0]?.type}`);
  const findings = unwell
    .filter((device) => !isOfWhole(device))
    .map(({ family, id, health }) => {
      const [worst] = health.conditions;
      const parts = unwell.filter((one) => one.family === family && one.parent === id && isOfWhole(one)).length;
      const also = parts === 0 ? '' : `, and ${parts} of its parts for the same reason`;
      const cause = worst === undefined ? 'There is no current reading of the device.' : `${worst.type}: ${worst.message}`;
      return finding(name, `${family}/${id} is ${health.state}${also}`, cause, worst === undefined ? REMEDY : `${worst.remedy}. ${REMEDY}`);
    });
  return bounded(name, findings);
}

interface Problem {
  readonly message: string;
  readonly code?: string;
  /** A problem of the kubelet has a reason and no code. */
  readonly reason?: string;
  readonly remedy?: string;
}

interface Probe {
  readonly family: string;
  readonly problems?: readonly Problem[];
}

/** Parts of the answer of `/api/v1/status` that have problems. */
interface Status {
  readonly snapshot?: { readonly ageSeconds?: number };
  readonly config?: { readonly problem?: Problem };
  readonly kubelet?: { readonly problem?: Problem };
  readonly probes?: readonly Probe[];
}

/** Reports the problems that a running agent has now. */
export async function checkRunningAgent({ ask }: CheckContext): Promise<CheckResult[]> {
  const name = 'running-agent';
  const { answer, refusal } = await ask('/api/v1/status');
  if (refusal !== undefined) return [skipped(name, `it cannot be asked: ${REFUSAL_TEXTS[refusal].detail}`)];
  const status = (answer?.body ?? undefined) as Status | undefined;
  if (answer?.status !== 200 || status === undefined) return [skipped(name, 'no agent answers; this command read the hardware itself')];
  const parts: readonly (readonly [string, Problem | undefined])[] = [
    ['configuration', status.config?.problem],
    ['kubelet', status.kubelet?.problem],
    ...probesIn(status).flatMap(({ family, problems = [] }) => problems.map((problem) => [`probe ${family}`, problem] as const)),
  ];
  const findings = parts.flatMap(([part, problem]) => {
    if (problem === undefined) return [];
    const word = problem.code ?? problem.reason;
    const code = word === undefined ? '' : ` [${word}]`;
    return [
      finding(
        name,
        `${part}: ${problem.message}${code}`,
        'The running agent has this problem now.',
        problem.remedy ?? "See the agent's log.",
      ),
    ];
  });
  return findings.length === 0 ? [ok(name, `it has no problems${ageOf(status)}`)] : bounded(name, findings);
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

/** Another program may answer at the address. */
const probesIn = ({ probes }: Status): readonly Probe[] => (Array.isArray(probes) ? probes : []);
