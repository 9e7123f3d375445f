import { UserError } from '../../errors.ts';
import type { Allocation } from '../../model/allocation.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { deviceKey } from '../../model/device.ts';
import type { ActiveCondition, PendingCondition, Verdict } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { UnresolvedReason } from '../../model/snapshot.ts';
import { type ReadingView, readingName } from '../../server/api/names.ts';
import { type Ask, REFUSAL_TEXTS, type Refusal } from '../agent-api.ts';
import { type ApiDevice, devicesIn, probationIn } from '../api-device.ts';
import type { TableData } from './table.ts';

/** Devices and allocations, as a table and as JSON. */
export interface Listed {
  readonly table: TableData;
  /** When the agent took the snapshot. */
  readonly takenAt?: string | undefined;
  json(): object;
}

/** Answers of the agent are about one snapshot when they have the same time. A refresh can come between two requests. */
const MOST_TRIES = 3;

/** Asks the agent for all that `list` prints. Undefined when none can be asked. Throws while the agent has no snapshot. */
export async function listedBy(ask: Ask): Promise<{ readonly listed?: Listed; readonly refusal?: Refusal | undefined }> {
  for (let tries = 1; ; tries += 1) {
    const { answer, refusal } = await ask('/api/v1/devices');
    if (answer?.status === 503) throw new UserError('agent-not-ready', {});
    const devices = devicesIn(answer?.body);
    if (devices === undefined) return { refusal };
    const allocations = (await ask('/api/v1/allocations')).answer?.body as AllocationsAnswer | undefined;
    const status = (await ask('/api/v1/status')).answer?.body as StatusAnswer | undefined;
    if (!Array.isArray(allocations?.allocations) || !Array.isArray(status?.probes)) return {};
    const body = answer?.body as { readonly takenAt?: string };
    if (body.takenAt !== allocations.takenAt && tries < MOST_TRIES) continue;
    const problems = status.probes.flatMap(({ family, problems: found }) =>
      found.map((problem: object) => ({ family, ...problem, remedy: undefined })),
    );
    return {
      listed: {
        takenAt: body.takenAt,
        table: {
          devices: devices.map(stateOf),
          allocations: allocations.allocations.map((one) => allocationOf(one, devices)),
          ...(allocations.localities === undefined ? {} : { localities: allocations.localities }),
        },
        json: () => ({ ...body, ...allocations, problems }),
      },
    };
  }
}

export const listJson = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

const OWN_METRIC = /^(?:# (?:HELP|TYPE|UNIT) )?(?:device_agent_|process_|nodejs_)/;

/** The metrics of devices and containers, without those of the agent. */
export async function listPage(ask: Ask, path: string): Promise<string> {
  const { answer, refusal } = await ask(path);
  if (answer?.status === 200) {
    const lines = answer.text.split('\n').filter((line) => !OWN_METRIC.test(line));
    return lines.join('\n').replaceAll(/\n{3,}/g, '\n\n');
  }
  const problem = refusal === undefined ? `it answered ${answer?.status ?? 'nothing'}` : REFUSAL_TEXTS[refusal].detail;
  throw new UserError('agent-page', { path, problem });
}

interface AllocationsAnswer {
  readonly takenAt?: string;
  readonly allocations: readonly (Allocation & {
    readonly devices: readonly string[];
    readonly unresolved?: UnresolvedReason;
    readonly held: boolean;
  })[];
  readonly localities?: readonly ContainerLocality[];
}

interface StatusAnswer {
  readonly probes: readonly { readonly family: string; readonly problems: readonly object[] }[];
}

function stateOf(api: ApiDevice): TableData['devices'][number] {
  const { health, holders, readings, missingSince, stale } = api;
  return {
    key: deviceKey(api),
    device: api as Device,
    readings: METRICS.flatMap((metric) => readingsOf(metric, readings?.[readingName(metric)])),
    verdict: verdictOf(health),
    holders: (holders ?? []) as readonly Allocation[],
    ...(missingSince === undefined ? {} : { missingSinceMs: Date.parse(missingSince) }),
    stale: stale === true,
  };
}

/** Metrics of the table. */
const METRICS = [
  shared.utilization,
  shared.memoryUsed,
  shared.memoryTotal,
  shared.temperature,
  shared.temperatureLimit,
  shared.power,
  shared.powerLimit,
].map(({ name }) => name);

function readingsOf(metric: string, view: ReadingView | undefined): readonly Reading[] {
  if (view === undefined) return [];
  return typeof view === 'object' ? view.map(({ labels, value }) => ({ metric, labels, value })) : [{ metric, value: view }];
}

function verdictOf({ state, conditions, pending, unchecked, probation }: ApiDevice['health']): Verdict {
  const condition = ({ unverifiedSince, recovering, ...rest }: ApiDevice['health']['conditions'][number]): ActiveCondition =>
    defined({
      ...rest,
      unverifiedSinceMs: unverifiedSince && Date.parse(unverifiedSince),
      recovering: recovering && { sinceMs: Date.parse(recovering.since), untilMs: Date.parse(recovering.until) },
    }) as ActiveCondition;
  return defined({
    state,
    sinceMs: 0,
    conditions: conditions.map(condition),
    pending: pending?.map((one) => ({ ...condition(one), countsAtMs: Date.parse(one.countsAt) }) as PendingCondition),
    unchecked,
    probation: probation && probationIn(probation),
  });
}

/** The API names the devices of an allocation by their ids. */
function allocationOf(
  { devices: ids, unresolved, ...allocation }: AllocationsAnswer['allocations'][number],
  devices: readonly ApiDevice[],
): TableData['allocations'][number] {
  const isHeldAs = ({ holders = [] }: ApiDevice): boolean =>
    holders.some(
      ({ namespace, pod, container, resource, deviceId }) =>
        namespace === allocation.namespace &&
        pod === allocation.pod &&
        container === allocation.container &&
        resource === allocation.resource &&
        deviceId === allocation.deviceId,
    );
  const keys = devices.filter((device) => ids.includes(device.id) && isHeldAs(device)).map(deviceKey);
  return { allocation, devices: keys, ...(unresolved === undefined ? {} : { unresolved }) };
}
