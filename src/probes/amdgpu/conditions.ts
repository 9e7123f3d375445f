import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import { declaredFinding, growthCondition, raiseGrowth } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { overTemperature, overTemperatureCondition } from '../kit/temperature.ts';
import type { AwakeSample, CardReadResult } from './card.ts';
import type { RasBlocks } from './discover.ts';
import { metrics } from './metrics.ts';
import type { BadPages, BlockErrors, RasEvents, RasSample } from './ras.ts';

const RAS = '/sys/bus/pci/devices/<address>/ras';
const DRIVER = 'Linux drivers/gpu/drm/amd';

export const conditions = {
  RasFatal: {
    type: 'RasFatal',
    class: 'latched',
    severity: 'fatal',
    reasons: ['FatalErrors', 'NoFatalErrors', 'Unreadable'],
    meaning:
      'The card had a fatal hardware error since the agent knows it and the driver was loaded; FatalErrorRecorded tells of earlier ones, and of those of a linked card where the kernel log tells whose they were: linked cards count together. Where the directory `ras` is missing, the topology of KFD and the model show whether the card handles errors. Where only `event_state` is missing, nothing shows whether the kernel has it.',
    remedy: 'reboot',
    source: `${RAS}/event_state: Fatal Error; AMD's exporter also fails a GPU on the first such error, if it is young enough (GPU_CPER_MAX_AGE)`,
  },
  FatalErrorRecorded: {
    type: 'FatalErrorRecorded',
    class: 'latched',
    severity: 'info',
    reasons: ['FatalErrors', 'NoFatalErrors'],
    meaning:
      'The driver has a record of a fatal hardware error, which may be older than the last reset of the card. Its time and its code (AFID) are only in a file of debugfs that the agent does not read, because Linux 6.15 to 7.0 may write past the memory of the reader; `amd-smi ras --cper` shows them.',
    remedy: 'inspect',
    source: `${RAS}/event_state: Fatal Error`,
  },
  RasUncorrectable: {
    type: 'RasUncorrectable',
    class: 'latched',
    severity: 'fatal',
    reasons: ['UncorrectableErrors', 'NoErrors', 'Unreadable'],
    meaning: 'A block of the card had uncorrectable errors since the driver was loaded.',
    remedy: 'reboot',
    source: `${RAS}/<block>_err_count or aca_<block>: ue; the default threshold of AMD's exporter is 0`,
  },
  RasDeferred: growthCondition({
    type: 'RasDeferred',
    severity: 'degraded',
    meaning: 'Memory had errors that could not be corrected, in places that nothing read so far.',
    remedy: 'inspect',
    source: `${RAS}/<block>_err_count or aca_<block>: de`,
    growth: 10,
    windowMs: hours(24),
  }),
  RasCorrectable: growthCondition({
    type: 'RasCorrectable',
    severity: 'info',
    meaning: 'Many errors were corrected.',
    remedy: 'inspect',
    source: `${RAS}/<block>_err_count or aca_<block>: ce; the limit is our choice`,
    growth: 1_000,
    windowMs: hours(1),
  }),
  PoisonConsumed: growthCondition({
    type: 'PoisonConsumed',
    severity: 'degraded',
    meaning: 'A process read damaged data, and the driver ended it. The card itself can still be used.',
    remedy: 'restart-workload',
    source: `${RAS}/event_state: Poison Consumption`,
    growth: 0,
    windowMs: hours(1),
  }),
  PoisonCreated: growthCondition({
    type: 'PoisonCreated',
    severity: 'info',
    meaning: 'The card marked damaged data, which nothing read so far.',
    remedy: 'inspect',
    source: `${RAS}/event_state: Poison Creation`,
    growth: 10,
    windowMs: hours(24),
  }),
  BadPagesPending: {
    type: 'BadPagesPending',
    class: 'latched',
    severity: 'degraded',
    reasons: ['PagesPending', 'NonePending', 'Unreadable'],
    meaning: 'Pages of memory will be retired at the next reset.',
    remedy: 'reboot',
    source: `${RAS}/gpu_vram_bad_pages: flag P`,
  },
  BadPagesFailed: {
    type: 'BadPagesFailed',
    class: 'latched',
    severity: 'fatal',
    reasons: ['PagesFailed', 'NoneFailed', 'Unreadable'],
    meaning: 'Pages of memory could not be retired.',
    remedy: 'replace',
    source: `${RAS}/gpu_vram_bad_pages: flag F`,
  },
  Resetting: {
    type: 'Resetting',
    class: 'in-progress',
    severity: 'fatal',
    reasons: ['ReadsRefused', 'ReadsAnswered', 'Asleep'],
    meaning: 'The driver refuses reads of an awake card for longer than a reset takes.',
    remedy: 'reboot',
    source: `${DRIVER}/pm/amdgpu_pm.c: EPERM or EBUSY while a reset runs`,
    forMs: minutes(2),
  },
  OverTemperature: {
    ...overTemperatureCondition,
    source: 'Linux Documentation/gpu/amdgpu/thermal: temp*_crit, temp*_emergency',
  },
  KfdMissing: {
    type: 'KfdMissing',
    class: 'latched',
    severity: 'fatal',
    reasons: ['NoNode', 'HasNode'],
    meaning: 'The compute driver (KFD) no longer lists a card that it listed since the machine booted.',
    remedy: 'reboot',
    source: '/sys/class/kfd/kfd/topology/nodes: drm_render_minor',
  },
  PartitionMissing: {
    type: 'PartitionMissing',
    class: 'latched',
    severity: 'degraded',
    reasons: ['FewerThanMode', 'AsMode'],
    meaning: 'The card has fewer partitions than its partition mode requires.',
    remedy: 'reload-driver',
    source: '/sys/class/kfd/kfd/topology/nodes against current_compute_partition',
  },
  XgmiLinkDown: {
    type: 'XgmiLinkDown',
    class: 'latched',
    severity: 'degraded',
    reasons: ['LinkDown', 'LinkUp'],
    meaning: 'A direct link to another GPU is down that was up since the machine booted.',
    remedy: 'reboot',
    source: 'gpu_metrics v1.7 and later: xgmi_link_status',
  },
} as const satisfies Readonly<Record<string, ConditionSpec>>;

/**
 * Cards that are linked count their events together: `hive->event_mgr` in amdgpu_ras.c. The kernel log tells whose each fatal error was: only
 * the card that had it has a line.
 */
export interface LinkedFatal {
  /** Lines about this card. */
  readonly own: number;
  /** Address of a card that had one. */
  readonly source: string;
}

/** All findings of one sample of a card. `linked`: when the log explains all fatal errors of the cards that count together. Pure. */
export function findingsOf(sample: CardReadResult, linked?: LinkedFatal): Finding[] {
  switch (sample.state) {
    case 'asleep':
      return [declaredFinding(conditions.Resetting, 'Asleep', { status: false, message: 'the card sleeps' })];
    case 'gone':
      return pcieErrorFindings({ aer: { errors: [], totals: {} }, answers: false });
    case 'hung':
      return [];
    case 'awake':
      return awakeFindings(sample, linked);
  }
}

function awakeFindings(sample: AwakeSample, linked?: LinkedFatal): Finding[] {
  return [
    ...(sample.isRefused === undefined ? [] : [resetting(sample.isRefused)]),
    ...sample.temperatures.map(overTemperature),
    ...rasFindings(sample.ras, linked),
    ...linkFindings(sample),
    ...(sample.pcie === undefined ? [] : pcieFindings(sample.pcie)),
  ];
}

function resetting(isRefused: boolean): Finding {
  const message = isRefused ? 'the driver refuses reads of the awake card' : 'the driver answers reads';
  return declaredFinding(conditions.Resetting, isRefused ? 'ReadsRefused' : 'ReadsAnswered', { status: isRefused, message });
}

function rasFindings({ events, blocks, blocksMs, badPages, badPagesMs }: RasSample, linked?: LinkedFatal): Finding[] {
  const ofPages = badPages === undefined ? [] : badPages === 'unknown' ? UNREADABLE_PAGES : badPageFindings(badPages);
  return [
    ...(events === undefined ? [] : events === 'unknown' ? [unreadable('RasFatal', 'event_state')] : eventFindings(events, linked)),
    ...blocks.flatMap(({ block, errors, isUnknown }) => {
      if (errors !== undefined) return asOf(blockFindings(block, errors), blocksMs);
      return isUnknown ? [unreadable('RasUncorrectable', `the errors of ${block}`, block)] : [];
    }),
    ...asOf(ofPages, badPagesMs),
  ];
}

/**
 * Conditions of a card whose files of error handling are missing, although its driver handles errors of `blocks`. Without them, a card whose
 * fault only these files show looks healthy. Whether a kernel has `event_state`, and a card a list of bad pages, no other source reports: these
 * two are missing only with the whole directory.
 */
export function missingRasFindings({ ras }: AwakeSample, blocks: RasBlocks): Finding[] {
  if (blocks === 'none') return [];
  const missing = blocks.filter((name) => !ras.blocks.some(({ block }) => block === name));
  const ofBlocks = missing.map((name) => unreadable('RasUncorrectable', `the errors of ${name}`, name));
  if (ras.isAbsent !== true) return ofBlocks;
  return [unreadable('RasFatal', 'event_state'), ...ofBlocks, ...(blocks.includes('umc') ? UNREADABLE_PAGES : [])];
}

const unreadable = (
  type: 'RasFatal' | 'RasUncorrectable' | 'BadPagesPending' | 'BadPagesFailed',
  what: string,
  instance?: string,
): Finding =>
  declaredFinding(conditions[type], 'Unreadable', {
    status: 'unknown',
    message: `${what} cannot be read`,
    ...(instance !== undefined && { instance }),
  });

const UNREADABLE_PAGES = (['BadPagesPending', 'BadPagesFailed'] as const).map((type) => unreadable(type, 'the list of bad pages'));

function eventFindings(
  { fatal_error: fatal, poison_creation: created, poison_consumption: consumed }: RasEvents,
  linked?: LinkedFatal,
): Finding[] {
  return [
    ...(fatal === undefined ? [] : fatalFindings(Number(fatal), linked)),
    ...raiseGrowth(conditions.PoisonConsumed, consumed, `consumed poison: ${consumed}`),
    ...raiseGrowth(conditions.PoisonCreated, created, `created poison: ${created}`),
  ];
}

/** The record of an error has no time: one from before the first read may be old, and the card reset since. */
function fatalFindings(fatal: number, linked?: LinkedFatal): Finding[] {
  const { RasFatal, FatalErrorRecorded } = conditions;
  const own = linked === undefined ? fatal : Math.min(fatal, linked.own);
  const message = `${fatal} fatal errors since the driver was loaded`;
  const reasonOf = (count: number) => (count > 0 ? 'FatalErrors' : 'NoFatalErrors');
  const ofOther = linked !== undefined &&
    own === 0 && {
      message: `${message} on the linked cards together: the source is ${linked.source}`,
      causedBy: linked.source,
      remedy: 'restart-workload' as const,
    };
  return [
    declaredFinding(RasFatal, reasonOf(own), { level: -own, message: `${own} fatal errors since the driver was loaded` }),
    declaredFinding(FatalErrorRecorded, reasonOf(fatal), { status: fatal > 0, message, ...(fatal > 0 && ofOther) }),
  ];
}

function blockFindings(block: string, { uncorrectable, correctable, deferred }: BlockErrors): Finding[] {
  const status = uncorrectable !== undefined && uncorrectable > 0;
  const message = `${block}: ${uncorrectable} uncorrectable errors since the driver was loaded`;
  return [
    ...(uncorrectable === undefined
      ? []
      : [declaredFinding(conditions.RasUncorrectable, status ? 'UncorrectableErrors' : 'NoErrors', { instance: block, status, message })]),
    ...raiseGrowth(conditions.RasDeferred, deferred, `${block}: ${deferred} deferred errors`, block),
    ...raiseGrowth(conditions.RasCorrectable, correctable, `${block}: ${correctable} corrected errors`, block),
  ];
}

function badPageFindings({ pending, failed, isWhole }: BadPages): Finding[] {
  const { BadPagesPending, BadPagesFailed } = conditions;
  const judged = (pages: number, what: string) => {
    const status: boolean | 'unknown' = pages > 0 || (isWhole ? false : 'unknown');
    return { status, message: `${pages} pages ${what}` };
  };
  const none = isWhole ? undefined : 'Unreadable';
  return [
    declaredFinding(BadPagesPending, pending > 0 ? 'PagesPending' : (none ?? 'NonePending'), judged(pending, 'wait for a reset')),
    declaredFinding(BadPagesFailed, failed > 0 ? 'PagesFailed' : (none ?? 'NoneFailed'), judged(failed, 'could not be retired')),
  ];
}

/** A link that was never up leads to no GPU on this board, which is no fault. */
const linkFindings = ({ readings }: AwakeSample): Finding[] =>
  readings.of(metrics.linkUp).map(({ labels, value }) => {
    const isUp = value === 1;
    const instance = labels?.port ?? '';
    const message = `${instance} is ${isUp ? 'up' : 'down'}`;
    return declaredFinding(conditions.XgmiLinkDown, isUp ? 'LinkUp' : 'LinkDown', { instance, message, level: isUp });
  });
