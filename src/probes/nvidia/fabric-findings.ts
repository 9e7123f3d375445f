import type { Finding } from '../../model/health.ts';
import { declaredFinding, raiseGrowth } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { conditions } from './conditions.ts';
import { type FabricSample, type FabricState, type GpuSample, INTENSE_PER_SECOND, type LinkSample, SWITCH_END } from './sample.ts';

/** Returns the findings about the fabric of one GPU, its NVLinks and its peers. `all`: the GPUs of the node in the same read. */
export function fabricFindings(gpu: GpuSample, all: readonly GpuSample[]): readonly Finding[] {
  const { fabric: registration = {}, times } = gpu;
  return [
    ...asOf(fabric(registration), times?.get('fabric')),
    ...asOf(links(gpu, all), times?.get('links')),
    ...asOf(peers(gpu), times?.get('peers')),
  ];
}

function fabric({ state, status = '', hasFailed, health, faults }: FabricSample): readonly Finding[] {
  const findings: Finding[] = [];
  if (state !== undefined) findings.push(fabricState(state, status, hasFailed === true));
  return [...findings, ...fabricHealth(health, faults)];
}

const OF_HEALTH = {
  healthy: { reason: 'Healthy', severity: 'fatal' },
  unhealthy: { reason: 'Unhealthy', severity: 'fatal' },
  limited_capacity: { reason: 'LimitedCapacity', severity: 'degraded' },
} as const;

/** The summary decides; without one, as from driver 550, the mask does. The mask names the cause, and what helps. */
function fabricHealth(health: FabricSample['health'], faults: FabricSample['faults']): readonly Finding[] {
  const [worst] = faults ?? [];
  if (health === undefined && faults === undefined) return [];
  const status = health === undefined ? worst !== undefined : health !== 'healthy';
  const told = status && worst !== undefined ? faults : undefined;
  const shown = `fabric health: ${health ?? (status ? 'faulty' : 'healthy')}`;
  const message = told === undefined ? shown : `${shown}, ${told.map(({ meaning }) => meaning).join(', ')}`;
  const { reason, severity } = OF_HEALTH[health ?? 'healthy'];
  if (told === undefined || worst === undefined)
    return [declaredFinding(conditions.FabricUnhealthy, reason, { status, message, severity })];
  const more = { severity: health === undefined ? worst.severity : severity, remedy: worst.remedy };
  return [declaredFinding(conditions.FabricUnhealthy, worst.reason, { status, message, ...more })];
}

function fabricState(state: FabricState, status: string, hasFailed: boolean): Finding {
  const reasons = { not_started: 'NotStarted', in_progress: 'InProgress', completed: hasFailed ? 'RegistrationFailed' : 'Ready' } as const;
  const reason = reasons[state];
  const message = `fabric state: ${state}, status: ${status || 'none'}`;
  return declaredFinding(conditions.FabricNotReady, reason, { status: reason !== 'Ready', message });
}

/** While MIG is on, the driver takes the links down. */
const maySplit = ({ values = {}, unread = [] }: GpuSample): boolean =>
  values.isMigOn === true || unread.some(({ value }) => value === 'isMigOn');

/**
 * Each link is compared with its own earlier state: GPUs of small virtual machines and boards without a bridge have links that are never up.
 * When no link is left, one finding for all links replaces those of the links. A GPU that never had one is compared with the others.
 */
function links(gpu: GpuSample, all: readonly GpuSample[]): readonly Finding[] {
  const { links: read = [], hasAllLinks: isComplete = false } = gpu;
  if (maySplit(gpu) || read.length === 0) return [];
  const up = read.filter(({ isUp }) => isUp).length;
  const isUnlikeOthers = up === 0 && mustReachSwitch(gpu, all);
  const message = `${up} of ${read.length} NVLinks are up${isUnlikeOthers ? ', and most other GPUs of this model reach a switch' : ''}`;
  const judgement = { instance: 'all', message, level: up > 0, ...(isUnlikeOthers && { atLeast: true }), severity: 'fatal' } as const;
  const reason = isUnlikeOthers ? 'DownUnlikeOthers' : 'DownAfterUp';
  const whole = isComplete || up > 0 ? [declaredFinding(conditions.NvLinkDown, reason, judgement)] : [];
  return up === 0
    ? whole
    : [...whole, ...errorRate(read), ...read.flatMap(link), ...slow(read), ...(isComplete ? withoutErrors(read) : [])];
}

/** A link is compared with the fastest one of its GPU, and with its own highest speed. */
function slow(read: readonly LinkSample[]): readonly Finding[] {
  const fastest = Math.max(...read.map(({ bytesPerSecond = 0 }) => bytesPerSecond));
  return read.flatMap(({ number, end, bytesPerSecond: level }) => {
    if (level === undefined) return [];
    const message = `nvlink${number}${end === undefined ? '' : ` to ${end}`} runs at ${level / 1e9} GB/s, the fastest link at ${fastest / 1e9} GB/s`;
    return [declaredFinding(conditions.NvLinkSlow, 'SlowerThanOthers', { instance: `nvlink${number}`, message, level, atLeast: fastest })];
  });
}

/** One finding for all links: when they fail, they mostly fail together. A link that is up and was not read may be one of them. */
function errorRate(read: readonly LinkSample[]): readonly Finding[] {
  const up = read.filter(({ isUp }) => isUp);
  const intense = up.filter(({ errorMinutes }) => (errorMinutes?.perSecond ?? 0) >= INTENSE_PER_SECOND);
  if (intense.length === 0 && up.some(({ errorMinutes }) => errorMinutes?.perSecond === undefined)) return [];
  const names = intense.map(({ number }) => number).join(', ');
  const message =
    intense.length === 0
      ? 'no NVLink has many errors a second'
      : `${intense.length} of ${read.length} NVLinks have ${INTENSE_PER_SECOND} or more errors a second: ${names}`;
  return [
    declaredFinding(conditions.NvLinkErrorRate, intense.length === 0 ? 'FewErrors' : 'ManyErrors', { status: intense.length > 0, message }),
  ];
}

/** Boards with switches connect all their GPUs to them, so GPUs of one model are alike. A split GPU proves nothing: its links are down. */
function mustReachSwitch({ identity }: GpuSample, all: readonly GpuSample[]): boolean {
  const alike = all.filter((other) => other.identity?.name === identity?.name && other.links !== undefined && !maySplit(other));
  const reaching = alike.filter(({ links = [] }) => links.some(({ isUp, end }) => isUp && end === SWITCH_END));
  // The GPU itself is one of those alike, and does not count.
  return identity?.name !== undefined && reaching.length * 2 > alike.length - 1;
}

/**
 * Most links have no errors at all, and get no finding on them. One finding for all of them ends the condition of a link whose counters were
 * set to 0 with the driver. A link whose errors were not read ends nothing.
 */
function withoutErrors(read: readonly LinkSample[]): readonly Finding[] {
  if (read.some(({ errorMinutes }) => errorMinutes === undefined)) return [];
  const judgement = { status: false, message: 'the other NVLinks have no errors since the driver was loaded' };
  return [
    declaredFinding(conditions.NvLinkErrors, 'CounterGrows', judgement),
    declaredFinding(conditions.NvLinkRecoveries, 'CounterGrows', judgement),
  ];
}

function link({ number, isUp, end, errorMinutes: errors }: LinkSample): readonly Finding[] {
  const instance = `nvlink${number}`;
  const name = `${instance}${end === undefined ? '' : ` to ${end}`}`;
  const down = declaredFinding(conditions.NvLinkDown, 'DownAfterUp', {
    instance,
    message: `${name} is ${isUp ? 'up' : 'down'}`,
    level: isUp,
  });
  if (errors === undefined) return [down];
  const kinds = errors.kinds.length === 0 ? '' : `, last of kind ${errors.kinds.join(', ')}`;
  return [
    down,
    ...raiseGrowth(conditions.NvLinkErrors, errors.minutes, `${name}: minutes with new errors${kinds}`, instance),
    ...raiseGrowth(conditions.NvLinkRecoveries, errors.recoveryMinutes, `${name}: minutes with a new recovery`, instance),
  ];
}

/** A peer is compared with its own earlier state, because boards without NVLink between them never had access. */
function peers(gpu: GpuSample): readonly Finding[] {
  return (gpu.peers ?? []).flatMap(({ pciAddress, hasAccess }) => {
    if (pciAddress === undefined || hasAccess === undefined || maySplit(gpu)) return [];
    const message = `the driver says that GPU ${pciAddress} is ${hasAccess ? '' : 'not '}reached over NVLink`;
    return [declaredFinding(conditions.NvLinkPeerLost, 'NoAccessAfterAccess', { instance: pciAddress, message, level: hasAccess })];
  });
}

/** Clique and domain as one text; undefined for a GPU that is in none, or whose clique was not read. */
const cliqueOf = ({ clique, cluster }: FabricSample = {}): string | undefined =>
  clique === undefined || cluster === undefined ? undefined : `clique ${clique} of ${cluster}`;

/** Whether a GPU may be in a clique that was not read: it has joined the fabric, its state was not read either, or it is lost. */
const mayBeInOne = ({ fabric, unread = [] }: GpuSample): boolean =>
  cliqueOf(fabric) === undefined &&
  ((fabric?.state === 'completed' && fabric.hasFailed !== true) || unread.some(({ value, kind }) => value === 'fabric' || kind === 'lost'));

/** The clique of a GPU at the last read that had one, and how often it changed while a program used the GPU. */
interface Membership {
  readonly clique: string;
  readonly isUsed: boolean;
  readonly changes: number;
}

/** Judges the cliques of the GPUs of one node: against each other, and against the clique that each GPU had before. */
export class FabricCliques {
  readonly #members = new Map<string, Membership>();

  /**
   * Returns the findings of each GPU of one read. When the two largest cliques have the same number of GPUs, no clique is the usual one, and
   * each GPU gets the finding. A node without a domain of several nodes has one clique. GPUs whose clique was not read may be in any: when
   * they decide, there is no finding of the comparison. So may the GPUs that the driver does not show, `unshown` in number.
   */
  take(gpus: readonly GpuSample[], unshown = 0): (gpu: GpuSample) => readonly Finding[] {
    const counts = new Map<string, number>();
    for (const { fabric } of gpus) {
      const clique = cliqueOf(fabric);
      if (clique !== undefined) counts.set(clique, (counts.get(clique) ?? 0) + 1);
    }
    const unread = gpus.filter(mayBeInOne).length + unshown;
    const cliques = [...counts].sort(([, a], [, b]) => b - a);
    const findingsOf = (gpu: GpuSample): readonly Finding[] => {
      const clique = cliqueOf(gpu.fabric);
      if (clique === undefined) return [];
      const own = counts.get(clique) ?? 0;
      const [other, most] = cliques.find(([name]) => name !== clique) ?? ['', 0];
      const isUsual = own > most + unread;
      const isOpen = !isUsual && own + unread > most;
      const message = isUsual ? clique : `${clique}, while ${most} of ${gpus.length} GPUs are in ${other}`;
      return [
        ...(isOpen
          ? []
          : [declaredFinding(conditions.FabricCliqueDiffers, isUsual ? 'SameClique' : 'OtherClique', { status: !isUsual, message })]),
        ...raiseGrowth(conditions.FabricCliqueChanged, this.#changes(gpu, clique), `changes of the clique during use, now ${clique}`),
      ];
    };
    const findings = new Map(gpus.map((gpu) => [gpu, findingsOf(gpu)]));
    return (gpu) => findings.get(gpu) ?? [];
  }

  /** Without a list of processes the GPU counts as used. Undefined for a GPU without UUID. */
  #changes({ identity, processes }: GpuSample, clique: string): number | undefined {
    if (identity?.uuid === undefined) return undefined;
    const isUsed = processes?.count !== 0;
    const before = this.#members.get(identity.uuid) ?? { clique, isUsed, changes: 0 };
    const changes = before.changes + Number(before.clique !== clique && (isUsed || before.isUsed));
    this.#members.set(identity.uuid, { clique, isUsed, changes });
    return changes;
  }
}
