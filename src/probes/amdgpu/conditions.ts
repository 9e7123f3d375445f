import { hours, minutes } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { growthCondition } from '../kit/growth-condition.ts';
import { overTemperatureCondition } from '../kit/temperature.ts';

const RAS = '/sys/bus/pci/devices/<address>/ras';
const DRIVER = 'Linux drivers/gpu/drm/amd';

export const conditions = {
  RasFatal: {
    type: 'RasFatal',
    class: 'latched',
    severity: 'fatal',
    reasons: ['FatalErrors', 'NoFatalErrors', 'Unreadable'],
    meaning:
      'The card had a fatal hardware error since the driver was loaded. Where the directory `ras` is missing, the topology of KFD and the model show whether the card handles errors. Where only `event_state` is missing, nothing shows whether the kernel has it.',
    remedy: 'reboot',
    source: `${RAS}/event_state: Fatal Error; AMD's exporter also fails a GPU on the first such error`,
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
