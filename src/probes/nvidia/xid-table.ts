import type { Remedy, Severity } from '../../model/health.ts';
import type { RootCauseRule } from '../kit/root-cause.ts';
import { type LinkErrorKind, linkErrorKind } from './nvlink-errors.ts';
import type { RecoveryAction } from './sample.ts';
import type { XidLine } from './xid-line.ts';

export const XID_REASONS = [
  'Application',
  'Driver',
  'Hardware',
  'Link',
  'Information',
  'RecoveryAction',
  'UnknownXid',
  'Recovered',
] as const;

/** Source of an Xid; also the reason of its condition. */
type XidClass = Exclude<(typeof XID_REASONS)[number], 'Recovered'>;

/**
 * Event that ends the condition of an Xid. `quiet`: the Xid does not occur again for some time. `reset`: a reset of the GPU, or the
 * recovery action "none". `boot`: the next boot, or the recovery action "none"; a reset does not end it.
 */
type XidLasts = 'quiet' | 'reset' | 'boot';

/** Meaning of one Xid, or of several similar Xids, for this agent. */
export interface XidRow {
  readonly xids: readonly number[];
  readonly meaning: string;
  readonly class: XidClass;
  /** `info` does not affect the device, `degraded` marks it, `fatal` makes it unhealthy. */
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly lasts: XidLasts;
  /** True when all MIG instances share the failed part, so a line that names one instance concerns all. */
  readonly isWholeGpu?: true;
}

type Outcome = Pick<XidRow, 'severity' | 'lasts'>;
const INFO: Outcome = { severity: 'info', lasts: 'quiet' };
const PASSING: Outcome = { severity: 'degraded', lasts: 'quiet' };
const UNTIL_RESET: Outcome = { severity: 'degraded', lasts: 'reset' };
const UNTIL_BOOT: Outcome = { severity: 'degraded', lasts: 'boot' };
const FATAL_UNTIL_RESET: Outcome = { severity: 'fatal', lasts: 'reset' };
const FATAL_UNTIL_BOOT: Outcome = { severity: 'fatal', lasts: 'boot' };
const WHOLE = { isWholeGpu: true } as const;

/** Contained memory error. Its line can say that no reset is needed. */
const CONTAINED = 94;
const CONTAINED_MEANING = 'uncorrectable memory error, contained: only its program is lost';

/**
 * The whole catalogue. The severities are those of this agent: an error that ends with the program is `info` or passes, an error that
 * a reset repairs is `fatal` until the reset, and an error that the catalogue says to ignore is not `fatal`.
 *
 * Sources: numbers, names and first steps from NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors, data-centre GPUs from Ampere on),
 * meanings of older numbers from nverror.h of NVIDIA's open kernel modules.
 */
export const XID_TABLE: readonly XidRow[] = [
  row([...range(1, 4), 6, 7], 'push buffer stream or address damaged (older drivers)', 'Driver', PASSING, 'inspect'),
  row([5, 10, 15, 17], 'number without use', 'Driver', PASSING, 'inspect'),
  row([8], 'FIFO idle timeout: the GPU stopped processing', 'Application', INFO, 'restart-workload'),
  row([9, 12], 'driver error while programming the GPU or handling its exception (older drivers)', 'Driver', PASSING, 'inspect'),
  row([11, 25], 'invalid push buffer stream', 'Application', PASSING, 'restart-workload'),
  row([13], 'graphics engine exception', 'Application', INFO, 'restart-workload'),
  row([14], 'error that a program injected for a test', 'Information', INFO, 'none'),
  row([16, 19], 'display engine error (older drivers)', 'Driver', PASSING, 'inspect'),
  row([18], 'bus mastering timeout (older drivers)', 'Hardware', PASSING, 'inspect'),
  row([20, 21, 22], 'video push buffer damaged (older drivers)', 'Application', PASSING, 'restart-workload'),
  row([23], 'error logging was enabled (older drivers)', 'Information', INFO, 'none'),
  row([24, 26], 'semaphore or frame buffer timeout (older drivers)', 'Driver', PASSING, 'inspect'),
  row([27, 28, 29, 34, 35, 36, 42], 'video processor exception (older drivers)', 'Application', PASSING, 'restart-workload'),
  row([30], 'semaphore access error (older drivers)', 'Driver', PASSING, 'inspect'),
  row([31], 'GPU memory page fault', 'Application', INFO, 'restart-workload'),
  row([32], 'push buffer DMA error, often caused by the PCIe connection', 'Driver', PASSING, 'inspect'),
  row([33], 'security engine or micro-controller error (older drivers)', 'Driver', PASSING, 'inspect'),
  row([37], 'firmware method that is not implemented', 'Information', INFO, 'none'),
  row([38], 'firmware watchdog timeout', 'Driver', PASSING, 'inspect'),
  row([39, 40, 41, 70, 71, 72, 75, 76, 77, 85, ...range(126, 135)], 'copy engine exception', 'Application', PASSING, 'restart-workload'),
  row([43], 'channel stopped after a fault of its program', 'Application', INFO, 'restart-workload'),
  row([44], 'graphics engine fault during a context switch', 'Driver', PASSING, 'inspect'),
  row([45], 'channels removed after another error or the end of a program', 'Application', INFO, 'restart-workload'),
  row([46], 'GPU timeout', 'Driver', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([47, 65, 73], 'video encoder error (older drivers)', 'Application', PASSING, 'restart-workload'),
  row([48], 'uncorrectable (double-bit) memory error', 'Hardware', FATAL_UNTIL_RESET, 'reset'),
  row([...range(49, 53), 55], 'power or thermal state event (older drivers)', 'Hardware', PASSING, 'check-power'),
  row([54], 'auxiliary power is not connected', 'Hardware', FATAL_UNTIL_BOOT, 'check-power', WHOLE),
  row([56], 'display engine error (older drivers)', 'Hardware', PASSING, 'inspect'),
  row([57, 58], 'memory interface training or memory error (older drivers)', 'Hardware', PASSING, 'inspect'),
  row([59], 'power management micro-controller error (older drivers)', 'Driver', PASSING, 'inspect'),
  row([60], 'SEC2 or video processor exception', 'Application', PASSING, 'restart-workload'),
  row([61], 'power management micro-controller breakpoint', 'Driver', PASSING, 'inspect'),
  row([62], 'power management micro-controller halted', 'Driver', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([63], 'memory row remapped or page retired, effective after a reset', 'Hardware', UNTIL_RESET, 'reset'),
  row([64], 'memory row could not be remapped, or page not retired', 'Hardware', FATAL_UNTIL_BOOT, 'replace'),
  row([66, 67], 'illegal register access or interrupt by the driver', 'Driver', PASSING, 'inspect'),
  row([68], 'video decoder exception', 'Application', INFO, 'restart-workload'),
  row([69], 'graphics engine class error', 'Application', INFO, 'restart-workload'),
  row([74], 'NVLink error', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([78], 'vGPU could not start', 'Driver', PASSING, 'inspect'),
  row([79], 'fallen off the bus', 'Hardware', FATAL_UNTIL_RESET, 'reboot', WHOLE),
  row([80], 'push buffer checksum wrong: data damaged before it reached the GPU', 'Driver', PASSING, 'inspect'),
  row([81], 'VGA subsystem error (older drivers)', 'Driver', PASSING, 'inspect'),
  row(
    [82, 83, 84, 86, 88, 89, ...range(96, 105), 139],
    'video, JPEG or optical flow engine error',
    'Application',
    PASSING,
    'restart-workload',
  ),
  row([87, 90, 91, 138], 'number that current drivers do not use', 'Driver', PASSING, 'inspect'),
  row([92], 'high rate of corrected memory errors', 'Hardware', PASSING, 'inspect'),
  row([93], 'write limit of the infoROM reached', 'Hardware', UNTIL_BOOT, 'inspect'),
  row([CONTAINED], `${CONTAINED_MEANING}; reset pending`, 'Hardware', UNTIL_RESET, 'restart-workload'),
  row([95], 'uncorrectable memory error, not contained', 'Hardware', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([106, 107], 'test message of the management bus', 'Information', INFO, 'none'),
  row([108], 'NVLink address translation refused by the other side', 'Application', INFO, 'restart-workload'),
  row([109], 'context switch timeout', 'Driver', FATAL_UNTIL_RESET, 'reset'),
  row([110], 'security fault', 'Hardware', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([...range(111, 118)], 'display error (older drivers)', 'Driver', PASSING, 'inspect'),
  row([119], 'GPU system processor does not answer', 'Driver', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([120], 'GPU system processor error', 'Driver', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([121], 'corrected error on the link to the CPU (C2C)', 'Link', PASSING, 'reset'),
  row([122, 124], 'board flash could not be read or erased', 'Hardware', UNTIL_RESET, 'inspect'),
  row([123], 'board flash could not be written', 'Hardware', FATAL_UNTIL_RESET, 'reboot', WHOLE),
  row([125], 'infoROM file system error', 'Hardware', UNTIL_RESET, 'inspect'),
  row([136], 'NVLink training failed', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([137], 'NVLink access without privilege', 'Application', PASSING, 'restart-workload'),
  row([140], 'uncorrectable memory error from which the driver could not recover', 'Hardware', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([141], 'CUDA fast path error', 'Information', INFO, 'none'),
  row([142], 'video encoder 3 error', 'Driver', PASSING, 'inspect'),
  row([143], 'GPU could not be initialised; replace it when a reset does not help', 'Hardware', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([144], 'NVLink error in unit SAW', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([145], 'NVLink error in unit RLW', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([146], 'NVLink error in unit TLW', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([147], 'NVLink error in unit TREX', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([148], 'NVLink error in unit NVLPW_CTRL', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([149], 'NVLink error in unit NETIR', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([150], 'NVLink error in unit MSE', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([151], 'key rotation failed (confidential computing); restart the virtual machine', 'Driver', FATAL_UNTIL_BOOT, 'reboot', WHOLE),
  row([152, 153], 'deep learning accelerator error', 'Information', INFO, 'none'),
  row([154], 'recovery action changed', 'Information', FATAL_UNTIL_RESET, 'inspect', WHOLE),
  row([155], 'NVLink taken down by software', 'Link', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([156], 'resource retired, effective after a reset', 'Hardware', FATAL_UNTIL_RESET, 'reset'),
  row([157], 'resource could not be retired', 'Hardware', UNTIL_BOOT, 'replace'),
  row([158], 'fatal GPU timeout', 'Hardware', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([159], 'error on the coherent link to the CPU', 'Hardware', PASSING, 'inspect'),
  row([160], 'memory channel retired, effective after a reset', 'Hardware', UNTIL_RESET, 'reset'),
  row([161], 'memory channel could not be retired', 'Hardware', UNTIL_BOOT, 'replace'),
  row([162], 'power smoothing works again', 'Information', INFO, 'none'),
  row([163], 'power smoothing disengaged', 'Hardware', PASSING, 'check-cooling'),
  row([164], 'power smoothing hardware near its end of life', 'Hardware', UNTIL_BOOT, 'replace'),
  row([165], 'power smoothing hardware at its end of life', 'Hardware', UNTIL_BOOT, 'replace'),
  row([166, 170], 'NVLink traffic not secured as confidential computing wants it', 'Link', UNTIL_RESET, 'inspect'),
  row([167], 'fatal PCIe timeout', 'Hardware', FATAL_UNTIL_RESET, 'reboot', WHOLE),
  row([168], 'less memory than the board has, after errors in a protected region', 'Hardware', UNTIL_RESET, 'inspect'),
  row([169], 'security micro-controller halted', 'Driver', FATAL_UNTIL_RESET, 'reset', WHOLE),
  row([171], 'uncorrectable DRAM error, in detail for 48', 'Hardware', FATAL_UNTIL_RESET, 'reset'),
  row([172], 'uncorrectable SRAM error, in detail for 48', 'Hardware', FATAL_UNTIL_RESET, 'reset'),
  row([173], 'fatal error on the link to the CPU (C2C)', 'Link', FATAL_UNTIL_RESET, 'reboot', WHOLE),
  row([174], 'channel ended without a report', 'Driver', PASSING, 'restart-workload'),
  row([175], 'memory subsystem event', 'Hardware', PASSING, 'inspect'),
  row([176], 'corrected PCIe errors', 'Hardware', PASSING, 'inspect'),
];

function row(xids: readonly number[], meaning: string, kind: XidClass, outcome: Outcome, remedy: Remedy, whole?: typeof WHOLE): XidRow {
  return { xids, meaning, class: kind, ...outcome, remedy, ...whole };
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Returns the row of one Xid; undefined for numbers that are not in the table. */
export function xidRow(xid: number): XidRow | undefined {
  return XID_TABLE.find((row) => row.xids.includes(xid));
}

/** Meaning of one log line for the device that it names. */
export type XidJudgement = Omit<XidRow, 'xids'>;

/** Judges one line by the table, and by the severity, reset or recovery action in the line itself. */
export function judgeXid(line: XidLine): XidJudgement {
  const row = xidRow(line.xid);
  if (row === undefined) return { class: 'UnknownXid', meaning: 'not in the table', ...PASSING, remedy: 'inspect' };
  const { xids: _, ...judged } = row;
  if (line.xid === 154) return { ...judged, class: 'RecoveryAction', ...recoveryRemedy(line.recoveryAction) };
  if (line.resetRequired === true) return { ...judged, remedy: 'reset' };
  if (line.resetRequired === false && line.xid === CONTAINED) return { ...judged, ...PASSING, meaning: CONTAINED_MEANING };
  if (line.xid === 74 && line.isHopper === true) return { ...judged, ...judgeRegisters(line.registers?.words) };
  return isLinkError(line.xid) ? judgeLinkError(judged, line) : judged;
}

function judgeLinkError(judged: XidJudgement, line: XidLine): XidJudgement {
  const kind = kindOf(line);
  const told = kind === undefined ? {} : OF_KINDS[kind];
  const meaning = `${judged.meaning}${told.meaning ?? ''}`;
  if (kind !== 'host' && line.nvlink?.isFatal === true) return { ...judged, meaning };
  return { ...judged, ...PASSING, remedy: 'inspect', ...told, meaning };
}

/** What the kind of an NVLink error adds to its row. `meaning`: what follows that of the row. */
const OF_KINDS: Readonly<Record<LinkErrorKind, Partial<XidJudgement>>> = {
  own: { meaning: ', a fault of this GPU itself' },
  link: {},
  solo: {},
  peer: { meaning: ', and the other end of the link is its source' },
  flow: { remedy: 'restart-workload', meaning: ': a transfer failed' },
  report: {},
  cable: { remedy: 'check-cable', meaning: ': many bit errors' },
  host: { meaning: ': software or the host took the link down' },
  ignored: { ...INFO, remedy: 'none', meaning: ' that the vendor says to ignore' },
};

const kindOf = ({ nvlink }: XidLine): LinkErrorKind | undefined => (nvlink === undefined ? undefined : linkErrorKind(nvlink));

const bits = (...numbers: readonly number[]): number => numbers.reduce((word, bit) => (word | (1 << bit)) >>> 0, 0);

/** Bits of the first and of the fifth register after which the GPU goes on. All others of the seven need what the table says. */
const HARMLESS = [bits(0, 23, 30), 0, 0, 0, bits(20, 23, 26, 29), 0, 0];
/** Bits of the first, third and fifth register that tell damaged memory of a link. */
const OF_MEMORY = [bits(4, 5), 0, bits(0, 1, 2, 6), 0, bits(18, 19, 21, 22, 24, 25, 27, 28), 0, 0];
/** Bits that tell a poor connection. */
const OF_CONNECTION = [bits(8, 9, 12, 16, 17, 21, 22, 24, 28), 0, 0, 0, 0, 0, 0];

const isIn = (words: readonly number[], masks: readonly number[]): boolean => words.some((word, at) => (word & (masks[at] ?? 0)) !== 0);

/** Judges Xid 74 of a Hopper board by its registers, as NVIDIA's catalogue does (its analysis of NVLink errors, August 2025). */
function judgeRegisters(words: readonly number[] = []): Partial<XidJudgement> {
  const isHarmless = words.some((word) => word !== 0) && words.every((word, at) => (word & ~(HARMLESS[at] ?? 0)) === 0);
  return isHarmless ? { ...INFO, remedy: 'none', meaning: 'NVLink error that its registers call harmless' } : {};
}

/** What in the registers of Xid 74 matters when it comes again on the same link. */
export function repeatedLinkPart({ isHopper, registers }: XidLine): 'LinkMemory' | 'LinkConnection' | undefined {
  if (isHopper !== true || registers === undefined) return undefined;
  if (isIn(registers.words, OF_MEMORY)) return 'LinkMemory';
  return isIn(registers.words, OF_CONNECTION) ? 'LinkConnection' : undefined;
}

/** NVLink error of the GPU itself: an event of its link (unit NETIR). */
const LINK_SOURCE = 149;
/** NVLink error that tells a fault of the other end (unit RLW). */
export const LINK_VICTIM = 145;

/** An error of the units of NVLink 5. */
export const isLinkError = (xid: number): boolean => xid >= 144 && xid <= 150;

/** Name of an NVLink error in the rules: its kind where unit and registers tell whose fault it is, otherwise its number and whether it is fatal. */
export function linkCode(line: XidLine): string {
  const kind = kindOf(line);
  if (kind === 'own' || kind === 'solo' || kind === 'peer') return kind;
  return line.nvlink?.isFatal === true ? `${line.xid}` : `${line.xid} non-fatal`;
}

const FATAL_LINKS = range(144, 150).filter((xid) => xid !== LINK_VICTIM);
const FROM =
  "NVIDIA's catalogue of Xids: unit and registers tell a fault of the GPU itself and one of the other end; without them 149 is an event of the link itself, 145 reports the other end, and a fatal error goes before others";

const REPORTS_OF_OTHERS = ['peer', `${LINK_VICTIM}`, `${LINK_VICTIM} non-fatal`];
const NON_FATAL = range(144, 150).map((xid) => `${xid} non-fatal`);

/** Which GPU of a fabric is the source of NVLink errors on several. The first rule that finds one counts. */
export const LINK_RULES: readonly RootCauseRule[] = [
  { sources: ['own', `${LINK_SOURCE}`, `${LINK_SOURCE} non-fatal`], victims: ['solo', ...REPORTS_OF_OTHERS], withinMs: 60_000, from: FROM },
  { sources: ['own', ...FATAL_LINKS.map(String)], victims: ['solo', 'peer', ...NON_FATAL], withinMs: 60_000, from: FROM },
  { sources: ['solo'], victims: [...REPORTS_OF_OTHERS, ...NON_FATAL], withinMs: 60_000, from: FROM },
];

/** Judges an NVLink error whose source is another GPU. `source`: its address, `xid`: what it reported. */
export function judgeVictim(judged: XidJudgement, source: string, xid: number): XidJudgement {
  const meaning = `${judged.meaning.replace(/; its source .*/, '')}; its source is the GPU at ${source}, which reported Xid ${xid}`;
  return { ...judged, meaning, severity: 'info', remedy: 'restart-workload', lasts: 'quiet' };
}

/** An unknown action has the remedy `inspect`. */
function recoveryRemedy(action: RecoveryAction | undefined): Pick<XidJudgement, 'meaning' | 'remedy'> {
  const asked = action !== undefined && 'need' in action ? action : undefined;
  return {
    meaning: `the driver asks for ${asked?.meaning ?? 'an action that is not known here'}`,
    remedy: asked?.need.remedy ?? 'inspect',
  };
}
