import { minutes } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

const LOG = "NVIDIA driver's lines in the kernel log";
const REASONS = ['Application', 'Driver', 'Hardware', 'Link', 'Information', 'RecoveryAction', 'UnknownXid', 'Recovered'] as const;

export const xidConditions = [
  {
    type: 'Xid',
    class: 'latched',
    severity: 'fatal',
    reasons: REASONS,
    meaning:
      "The driver reported an error that stays until the GPU is reset or the machine boots. The instance is the number of the Xid. Severity and remedy come from the table of Xids, or from the driver's recovery action (154).",
    remedy: 'reset',
    source: `${LOG}: NVRM: Xid; severities by the table of Xids`,
    aside: true,
  },
  {
    type: 'XidPassing',
    class: 'self-clearing',
    severity: 'info',
    reasons: REASONS,
    meaning:
      'The driver reported an error that ends with a program or by itself. Errors of applications are for information and never make a device unhealthy. Removed channels (45) count only when no other error explains them.',
    remedy: 'restart-workload',
    source: `${LOG}: NVRM: Xid; it ends after ten minutes without a new line. Another error of the GPU, or of the same program, explains a later Xid 45 for 60 s, and an earlier one for 5 s`,
    recoveryMs: minutes(10),
    aside: true,
  },
  {
    type: 'GpuFallenOffBus',
    class: 'latched',
    severity: 'fatal',
    reasons: ['NoAnswer', 'Recovered'],
    meaning: 'The driver reported without an Xid that the GPU no longer answers on the PCIe bus.',
    remedy: 'reboot',
    source: `${LOG}: NVRM: fallen off the bus`,
    aside: true,
  },
  {
    type: 'NvSwitchFault',
    class: 'latched',
    severity: 'degraded',
    reasons: ['FatalSwitchError', 'Recovered'],
    meaning: 'An NVSwitch of the node reported a fatal error. It may interrupt NVLinks of any GPU; affected GPUs report their own errors.',
    remedy: 'inspect',
    source: `${LOG}: nvidia-nvswitch: SXid, Fatal; until the driver is loaded again`,
    aside: true,
  },
] as const satisfies readonly ConditionSpec[];
