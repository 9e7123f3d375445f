import { defined } from '../model/defined.ts';
import type { ActiveCondition, PendingCondition } from '../model/health.ts';
import { phasesOf, remedyNow } from '../model/health.ts';
import type { DeviceState, FamilyState, Snapshot } from '../model/snapshot.ts';
import type { RateOf } from './chosen-reading.ts';
import { farthestTexts } from './farthest.ts';
import { Holders, parentKey } from './holders.ts';
import { alsoOf, nameOf } from './name.ts';
import { byAttention, inTrees, STATE_ORDER } from './order.ts';
import { chooseReadings, type ShownOf } from './readings.ts';
import type {
  Board,
  BoardCounts,
  BoardFamily,
  BoardKubelet,
  BoardProblem,
  BoardRow,
  BoardUnresolved,
  RowCondition,
  RowState,
} from './row.ts';
import { KUBELET_REMEDIES, REMEDY_TEXTS, UNRESOLVED_TEXTS } from './words.ts';

export interface BoardOptions {
  readonly nowMs: number;
  readonly node?: string;
  /** Without it, no rate is known. */
  readonly rateOf?: RateOf;
  /** Without it, the readings of each device are chosen from the shared metrics. */
  readonly shownOf?: ShownOf;
  /** Declared remedy of a problem of a family. */
  readonly remedyOf?: (family: string, code: string) => string | undefined;
}

const MOST_UNRESOLVED = 100;

/** Turns a snapshot into what people see of it. Pure. */
export function boardOf(snapshot: Snapshot, options: BoardOptions): Board {
  const { nowMs, node, remedyOf } = options;
  const holders = new Holders(snapshot);
  const names = new Map(snapshot.devices.map(({ key, device }) => [key, nameOf(device)]));
  const farthest = farthestTexts(snapshot.localities ?? [], (key) => names.get(key) ?? key);
  const made = snapshot.devices.map((state) => ({ ...rowOf(state, holders, options), ...defined({ farthest: farthest.get(state.key) }) }));
  const rows = inTrees(withWholes(made), byAttention).map(({ row }) => row);
  return {
    ...(node === undefined ? {} : { node }),
    nowMs,
    takenAtMs: snapshot.takenAtMs,
    sequence: snapshot.sequence,
    counts: countsOf(rows),
    kubelet: kubeletOf(snapshot),
    families: snapshot.families.map((family) => familyOf(family, snapshot)),
    problems: problemsOf(snapshot, remedyOf),
    unresolved: unresolvedOf(snapshot),
    rows,
  };
}

function rowOf(state: DeviceState, all: Holders, options: BoardOptions): BoardRow {
  const { key, device, verdict, missingSinceMs, readAtMs, stale } = state;
  const { family, id, kind, vendor, driver, numaNode, pciAddress, pciPath } = device;
  const also = alsoOf(device);
  const model = device.model ?? (vendor === undefined ? undefined : [vendor, driver].filter((one) => one !== undefined).join(' '));
  const parent = parentKey(state);
  const sinceMs = missingSinceMs ?? verdict.sinceMs;
  const { use, holders } = all.of(state);
  return {
    key,
    family,
    id,
    name: nameOf(device),
    kind,
    ...(also === undefined ? {} : { also }),
    ...(model === undefined ? {} : { model }),
    ...(parent === undefined ? {} : { parent }),
    ...(numaNode === undefined ? {} : { numaNode }),
    ...(pciAddress === undefined ? {} : { pciAddress }),
    ...(pciPath === undefined ? {} : { pciPath }),
    state: stateOf(state),
    ...(sinceMs > 0 ? { sinceMs } : {}),
    readAtMs,
    ...(stale ? { isStale: true as const } : {}),
    conditions: [...verdict.conditions, ...(verdict.pending ?? [])].map(conditionOf),
    ...(verdict.unchecked === undefined ? {} : { unchecked: verdict.unchecked }),
    ...(verdict.probation === undefined ? {} : { probation: verdict.probation }),
    ...(verdict.ignored === undefined
      ? {}
      : {
          ignored: verdict.ignored.map((one) => ({ name: conditionName(one), untilMs: one.ignoredUntilMs, why: one.ignoreReason })),
        }),
    use,
    holders,
    readings: chooseReadings(state, options).map(({ series: _series, isRate: _isRate, limit: _limit, ...shown }) => shown),
  };
}

/** A port that is down is down for each virtual function. The remedy is shown once, on the parent. */
function withWholes(rows: readonly BoardRow[]): readonly BoardRow[] {
  const byKey = new Map(rows.map((row) => [row.key, row]));
  return rows.map((row) => {
    const whole = row.parent === undefined || row.parent === row.key ? undefined : byKey.get(row.parent);
    if (whole === undefined || row.conditions.length === 0 || whole.conditions.length === 0) return row;
    const isSame = ({ name, countsAtMs }: RowCondition): boolean =>
      whole.conditions.some((one) => one.name === name && (one.countsAtMs === undefined) === (countsAtMs === undefined));
    return { ...row, conditions: row.conditions.map((one) => (isSame(one) ? { ...one, ofWhole: whole.name } : one)) };
  });
}

export function stateOf({ missingSinceMs, verdict }: DeviceState): RowState {
  return missingSinceMs === undefined ? verdict.state : 'missing';
}

export function conditionOf(condition: ActiveCondition | PendingCondition): RowCondition {
  const { type, severity, reason, message, sinceMs, unverifiedSinceMs } = condition;
  const remedy = remedyNow(condition as ActiveCondition);
  const advice = REMEDY_TEXTS[remedy];
  return {
    name: conditionName(condition),
    type,
    severity,
    reason,
    message,
    standing: phasesOf(condition),
    remedy,
    ...(advice === undefined ? {} : { advice }),
    sinceMs,
    ...(unverifiedSinceMs === undefined ? {} : { unverifiedSinceMs }),
    ...('countsAtMs' in condition ? { countsAtMs: condition.countsAtMs } : {}),
    ...('recovering' in condition && condition.recovering !== undefined ? { recovering: condition.recovering } : {}),
  };
}

export function conditionName({ type, instance }: Pick<ActiveCondition, 'type' | 'instance'>): string {
  return instance === undefined ? type : `${type} (${instance})`;
}

function countsOf(rows: readonly BoardRow[]): BoardCounts {
  const states = Object.fromEntries(STATE_ORDER.map((state) => [state, rows.filter((row) => row.state === state).length]));
  return {
    devices: rows.length,
    held: rows.filter(({ use }) => use === 'held').length,
    heldByParts: rows.filter(({ use }) => use === 'held by parts').length,
    states: states as Record<RowState, number>,
    pending: rows.filter(
      ({ state, conditions }) =>
        state === 'healthy' && conditions.some(({ severity, countsAtMs }) => countsAtMs !== undefined && severity !== 'info'),
    ).length,
  };
}

function kubeletOf({ podResources }: Snapshot): BoardKubelet {
  const { problem, answeredAtMs, held } = podResources;
  return {
    state: problem?.reason ?? (answeredAtMs === undefined ? 'starts' : 'answers'),
    ...(answeredAtMs === undefined ? {} : { answeredAtMs }),
    kept: held.size,
  };
}

function familyOf({ family, succeeded, hung, lastSuccessMs, problems }: FamilyState, { devices }: Snapshot): BoardFamily {
  return {
    family,
    devices: devices.filter(({ device }) => device.family === family).length,
    state: hung ? 'hangs' : succeeded === undefined ? 'starts' : succeeded ? 'works' : 'fails',
    ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
    problems: problems.length,
  };
}

function problemsOf({ families, podResources }: Snapshot, remedyOf: BoardOptions['remedyOf']): readonly BoardProblem[] {
  const problem = (where: string, what: string, remedy: string | undefined): BoardProblem => ({
    where,
    what,
    ...(remedy === undefined ? {} : { remedy }),
  });
  const { problem: ofKubelet } = podResources;
  return [
    ...(ofKubelet === undefined ? [] : [problem('kubelet', ofKubelet.message, KUBELET_REMEDIES[ofKubelet.reason])]),
    ...families.flatMap(({ family, hung, problems }) => [
      ...(hung ? [problem(family, 'A read hangs; it was abandoned.', 'Search the kernel log for the device that does not answer.')] : []),
      ...problems.map(({ code, message, device }) =>
        problem(device === undefined ? family : `${family} ${device}`, message, remedyOf?.(family, code)),
      ),
    ]),
  ];
}

function unresolvedOf({ allocations }: Snapshot): readonly BoardUnresolved[] {
  return allocations
    .flatMap(({ allocation: { namespace, pod, container, resource, deviceId }, unresolved }) =>
      unresolved === undefined ? [] : [{ namespace, pod, container, resource, deviceId, why: UNRESOLVED_TEXTS[unresolved] }],
    )
    .slice(0, MOST_UNRESOLVED);
}
