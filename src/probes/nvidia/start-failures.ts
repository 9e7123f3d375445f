import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import type { KmsgRecord } from '../../host/kernel-log/record.ts';
import { parseSegfault, type Segfault } from '../../host/kernel-log/segfault.ts';
import { normalizePciAddress, pciAddressIn } from '../../host/pci/pci.ts';
import type { DeviceReport, Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { hours } from '../../model/duration.ts';
import type { Finding, Remedy } from '../../model/health.ts';
import { declaredFinding } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import { logConditions } from './log-findings.ts';

/** What a line reports about the cause of a failed start. */
type StartHint = 'firmware-locked' | 'needs-reset' | 'no-power';

/**
 * Lines of the driver about GPUs that it could not start, and about work that it refuses:
 * `failed`: the driver could not initialise the GPU. Old drivers name only the number of its device node.
 * `hint`: tells why. It comes before the line with the address, which it does not have itself.
 * `not-bound`: the driver refused the PCI function. `probe-failed`: the same, with a count in place of addresses.
 * `reset-required`: the driver refuses new work on some GPU until that GPU is reset.
 */
type StartLine =
  | { readonly kind: 'failed' | 'not-bound'; readonly pciAddress?: string; readonly minor?: number; readonly text: string }
  | { readonly kind: 'hint'; readonly hint: StartHint; readonly pciAddress?: string }
  | { readonly kind: 'probe-failed'; readonly text: string }
  | { readonly kind: 'reset-required'; readonly text: string }
  | { readonly kind: 'driver-loaded' };

const FAILED = /^NVRM: .*\brm_?init_?adapter failed\b/i;
const HINTS: readonly (readonly [RegExp, StartHint])[] = [
  [/^NVRM: .*\bunexpected WPR2 already up\b/i, 'firmware-locked'],
  [/^NVRM: .*\b(?:may need|needs) to be reset\b/i, 'needs-reset'],
  [/^NVRM: .*\bdoes not have the necessary power cables connected\b/i, 'no-power'],
];
const PROBE_FAILED = /^NVRM: The NVIDIA probe routine failed for \d+ device/i;
/** The first form is that of the driver core before Linux 6.10. The second one is a record of the device. */
const NOT_BOUND = /^nvidia: probe of ([0-9a-f:.]+) failed with error -?\d+/i;
const NOT_BOUND_ON_DEVICE = /^nvidia ([0-9a-f:.]+): probe with driver nvidia failed with error -?\d+/i;
const RESET_REQUIRED = /^NVRM: .*(?:\[NV_ERR_RESET_REQUIRED\]|\bGspRmAlloc failed:.* status=0x0*62\b)/;
const LOADED = /^NVRM: loading NVIDIA UNIX /;

/** Longest text that a message repeats. */
const MAX_TEXT_LENGTH = 200;

/** Undefined for a record of another origin, and for lines about something else. */
function parseStartLine({ origin, device, text }: Pick<KmsgRecord, 'origin' | 'device' | 'text'>): StartLine | undefined {
  if (origin !== 'kernel' && origin !== 'piece') return undefined;
  if (device !== undefined) return lineOfDevice(device, text);
  if (text.startsWith('nvidia: ')) return notBound(NOT_BOUND.exec(text), text);
  if (!text.startsWith('NVRM: ')) return undefined;
  if (FAILED.test(text)) return failedLine(text);
  const hint = HINTS.find(([form]) => form.test(text))?.[1];
  if (hint !== undefined) return { kind: 'hint', hint, ...addressOf(text) };
  if (PROBE_FAILED.test(text)) return { kind: 'probe-failed', text: told(text) };
  if (RESET_REQUIRED.test(text)) return { kind: 'reset-required', text: told(text) };
  return LOADED.test(text) ? { kind: 'driver-loaded' } : undefined;
}

function lineOfDevice(device: string, text: string): StartLine | undefined {
  const line = notBound(NOT_BOUND_ON_DEVICE.exec(text), text);
  return line !== undefined && 'pciAddress' in line && device === `+pci:${line.pciAddress}` ? line : undefined;
}

function notBound(match: RegExpExecArray | null, text: string): StartLine | undefined {
  const pciAddress = normalizePciAddress(match?.[1] ?? '');
  return pciAddress === undefined ? undefined : { kind: 'not-bound', pciAddress, text: told(text) };
}

/** `NVRM: GPU 0000:a1:00.0: RmInitAdapter failed! (0x62:0x40:2168)`, `NVRM: rm_init_adapter failed, device minor number 7`. */
function failedLine(text: string): StartLine | undefined {
  const minor = /\bminor number (\d{1,5})\b/i.exec(text)?.[1];
  const place = { ...addressOf(text), ...(minor !== undefined && { minor: Number(minor) }) };
  // The line of old drivers without any name comes together with one that has a number.
  return Object.keys(place).length === 0 ? undefined : { kind: 'failed', ...place, text: told(text) };
}

function addressOf(text: string): { readonly pciAddress?: string } {
  const pciAddress = pciAddressIn(text);
  return defined({ pciAddress });
}

/** The text without the name of the driver and of the GPU: what follows is in the message of a device. */
const told = (text: string): string =>
  text
    .replace(/^NVRM: (?:GPU ?(?:at )?(?:PCI:)?[0-9a-f:.]*: )?/i, '')
    .trim()
    .slice(0, MAX_TEXT_LENGTH);

interface Failure {
  readonly kind: 'failed' | 'not-bound';
  /** Time of the latest line on the clock of the log; absent when unknown. */
  readonly lastMs?: number | undefined;
  readonly text: string;
  readonly hint?: StartHint | undefined;
}

/** A refusal of new work is told for this time after its last line: the driver repeats it when a program starts. */
const REFUSAL_TOLD_MS = hours(24);
/** Limit for the GPUs whose failures are remembered. */
const MOST_GPUS = 256;

/** `timeMs`: on a clock that a change of the wall clock does not affect. */
type DatedRecord = Pick<KmsgRecord, 'origin' | 'device' | 'text'> & { readonly timeMs?: number | undefined };

/** What the kernel log of this boot tells about GPUs that did not start, and about work that the driver refuses. */
export class StartFailures {
  /** Keyed by PCI address, or by the number of the device node where the driver names only that. */
  readonly #failures = new Map<string, Failure>();
  #hint: StartHint | undefined;
  #probeFailed: string | undefined;
  #refusal: { readonly text: string; readonly lastMs: number | undefined } | undefined;

  /** Returns true when the record tells something new, so that it must be reported now. A driver can repeat its lines ten times a second. */
  add(record: DatedRecord): boolean {
    const line = parseStartLine(record);
    return line !== undefined && this.#take(line, record.timeMs);
  }

  /** Ends the failures of a GPU that answered in a read which began at `atMs`: the driver started it since. */
  answered({ pciAddress, minor }: Device, atMs: number): void {
    for (const key of keysOf(pciAddress, minor)) {
      const failure = this.#failures.get(key);
      if (failure !== undefined && (failure.lastMs === undefined || failure.lastMs < atMs)) this.#failures.delete(key);
    }
  }

  hasFailed(pciAddress: string): boolean {
    return this.#failures.has(pciAddress);
  }

  findings({ device, read }: DeviceReport, nowMs: number): readonly Finding[] {
    if (device.parent !== undefined) return [];
    const status = (type: string): Finding['status'] =>
      read?.findings.find((each) => each.type === type && each.instance === undefined)?.status;
    return [
      ...this.#startFinding(device, status(conditions.GpuLost.type) === false),
      ...this.#refusalFinding(status(conditions.RecoveryAction.type), nowMs),
    ];
  }

  #startFinding(device: Device, answers: boolean): readonly Finding[] {
    const { InitializationFailed: condition } = logConditions;
    const failure = this.#of(device);
    if (failure === undefined)
      return answers ? [declaredFinding(condition, 'Recovered', { status: false, message: 'the GPU answers' })] : [];
    const reason = failure.kind === 'not-bound' ? 'ProbeFailed' : (REASONS[failure.hint ?? ''] ?? 'AdapterFailed');
    return [declaredFinding(condition, reason, { status: true, message: failure.text, remedy: remedyOf(failure) })];
  }

  /** `isAsked`: whether the driver asks for a recovery of the GPU. */
  #refusalFinding(isAsked: Finding['status'], nowMs: number): readonly Finding[] {
    const { ResetRequired: condition } = logConditions;
    const refusal = this.#refusalAt(nowMs);
    if (isAsked === true && refusal !== undefined)
      return [declaredFinding(condition, 'NewWorkRefused', { status: true, message: refusal })];
    return isAsked === false ? [declaredFinding(condition, 'Recovered', { status: false, message: 'the driver asks for nothing' })] : [];
  }

  /** What helps a GPU that the driver does not show, by the log; undefined when the log has nothing about it. */
  remedyOf(device: Device): Remedy | undefined {
    const failure = this.#of(device);
    return failure && remedyOf(failure);
  }

  /** Failures that the driver reports without a name, and that no device has. */
  problems(reports: readonly DeviceReport[], nowMs: number): readonly Problem[] {
    const isTold = (...types: readonly string[]): boolean =>
      reports.some(({ read, outOfBand }) =>
        [...(read?.findings ?? []), ...(outOfBand?.findings ?? [])].some(({ type, status }) => types.includes(type) && status === true),
      );
    const problems: Problem[] = [];
    const { InitializationFailed, ResetRequired } = logConditions;
    if (this.#probeFailed !== undefined && !isTold(conditions.NotInitialized.type, InitializationFailed.type))
      problems.push({ code: 'start-failed', message: this.#probeFailed });
    const refusal = this.#refusalAt(nowMs);
    if (refusal !== undefined && !isTold(ResetRequired.type)) problems.push({ code: 'reset-required', message: refusal });
    return problems;
  }

  /** Text of the latest line with which the driver refused new work; undefined when that is long ago. */
  #refusalAt(nowMs: number): string | undefined {
    if (this.#refusal === undefined) return undefined;
    const { text, lastMs = nowMs } = this.#refusal;
    return nowMs - lastMs < REFUSAL_TOLD_MS ? text : undefined;
  }

  #of({ pciAddress, minor, parent }: Device): Failure | undefined {
    if (parent !== undefined) return undefined;
    return keysOf(pciAddress, minor)
      .map((key) => this.#failures.get(key))
      .find((failure) => failure !== undefined);
  }

  #take(line: StartLine, timeMs: number | undefined): boolean {
    switch (line.kind) {
      case 'hint':
        // The address comes in a later line. A cause that explains more stays until then.
        if (this.#hint !== 'firmware-locked') this.#hint = line.hint;
        return false;
      case 'failed':
      case 'not-bound':
        return this.#remember(line, timeMs);
      case 'probe-failed': {
        const isNew = this.#probeFailed === undefined;
        this.#probeFailed = line.text;
        return isNew;
      }
      case 'reset-required': {
        const isNew = this.#refusal === undefined;
        this.#refusal = { text: line.text, lastMs: timeMs };
        return isNew;
      }
      case 'driver-loaded':
        // A driver that was loaded again tells anew what it cannot start.
        this.#failures.clear();
        this.#hint = this.#probeFailed = this.#refusal = undefined;
        return false;
    }
  }

  #remember(line: Extract<StartLine, { readonly kind: 'failed' | 'not-bound' }>, lastMs: number | undefined): boolean {
    const [key = ''] = keysOf(line.pciAddress, line.minor);
    const before = this.#failures.get(key);
    // One failure is two lines, of which the first has the code of the error.
    const text = before !== undefined && /minor number/.test(line.text) ? before.text : line.text;
    const hint = this.#hint ?? before?.hint;
    this.#hint = undefined;
    if (before === undefined && this.#failures.size >= MOST_GPUS) return false;
    this.#failures.set(key, { kind: line.kind, lastMs, text, hint });
    return before === undefined || before.hint !== hint;
  }
}

const keysOf = (pciAddress: string | undefined, minor: number | undefined): readonly string[] => [
  ...(pciAddress === undefined ? [] : [pciAddress]),
  ...(minor === undefined ? [] : [`minor ${minor}`]),
];

const REASONS: Readonly<Record<string, 'FirmwareLocked' | 'NoPower'>> = { 'firmware-locked': 'FirmwareLocked', 'no-power': 'NoPower' };

/**
 * A region of the firmware that stayed locked is only unlocked by a reset of the bus or by power: a reboot leaves it. Where the driver gives
 * no cause, a GPU that did not start after a boot needs its power switched off and on too.
 */
function remedyOf({ hint }: Failure): Remedy {
  if (hint === 'no-power') return 'check-power';
  return hint === 'needs-reset' ? 'reset' : 'power-cycle';
}

/** A crash is reported for this time, so that at least one read sees it. Older lines have PIDs that other processes may have by now. */
const REPORTED_MS = 60_000;
const LIBRARY = /^libnccl\.so(?:\.\d{1,10}){0,4}$/;

interface Crash {
  readonly segfault: Segfault;
  readonly timeMs: number;
}

/** PIDs that used a device in its latest two reads. A crashed process may be missing in the latest one. */
type Users = readonly [latest: ReadonlySet<number>, before: ReadonlySet<number>];

const NOBODY: ReadonlySet<number> = new Set();

/** Attributes crashes inside NCCL to devices. Its memory has one crash per device and the PIDs of two reads. */
export class NcclCrashes {
  readonly #processOf: (pid: number) => number | undefined;
  #users: ReadonlyMap<string, Users> = new Map();
  #crashes: ReadonlyMap<string, Crash> = new Map();
  #devices: readonly Device[] = [];

  /** `processOf` returns the PID of the process to which a thread belongs; undefined when the thread has ended. */
  constructor(processOf: (pid: number) => number | undefined) {
    this.#processOf = processOf;
  }

  /** Remembers who uses the devices. A device that was not read keeps its users. */
  see(devices: readonly Device[], reports: readonly DeviceReport[]): void {
    const reads = new Map(reports.map(({ device, read }) => [device.id, read]));
    this.#devices = devices;
    this.#users = new Map(
      devices.map(({ id }): [string, Users] => {
        const [latest, before] = this.#users.get(id) ?? [NOBODY, NOBODY];
        const read = reads.get(id);
        return [id, read === undefined ? [latest, before] : [new Set(read.processes?.map(({ pid }) => pid)), latest]];
      }),
    );
    this.#crashes = new Map([...this.#crashes].filter(([id]) => this.#users.has(id)));
  }

  /** Returns true when the record is a crash that must be reported now. A crash of a process without a device is ignored. */
  add(message: KmsgMessage, nowMs: number): boolean {
    const { timeMs } = message;
    if (timeMs === undefined || nowMs - timeMs >= REPORTED_MS) return false;
    const segfault = parseSegfault(message);
    if (segfault?.file === undefined || !LIBRARY.test(segfault.file)) return false;
    const devices = this.#usedBy(segfault.pid);
    const isNew = devices.some(({ id }) => !isReported(this.#crashes.get(id), nowMs));
    this.#crashes = new Map([...this.#crashes, ...devices.map(({ id }) => [id, { segfault, timeMs }] as const)]);
    return isNew;
  }

  /** If the log `isReadable`, the absence of a crash is also a finding. */
  findings(device: string, nowMs: number, isReadable: boolean): readonly Finding[] {
    const crash = this.#crashes.get(device);
    if (isReported(crash, nowMs)) return [findingOf(crash)];
    if (!isReadable) return [];
    return [declaredFinding(logConditions.NcclSegfault, 'NoCrash', { status: false, message: 'no program crashed in NCCL lately' })];
  }

  #usedBy(thread: number): readonly Device[] {
    const direct = this.#devicesOf(thread);
    const process = direct.length > 0 ? undefined : this.#processOf(thread);
    return process === undefined ? direct : this.#devicesOf(process);
  }

  /** A process in an instance concerns the instance and not its GPU. */
  #devicesOf(pid: number): readonly Device[] {
    const devices = this.#devices.filter(({ id }) => this.#users.get(id)?.some((pids) => pids.has(pid)) === true);
    return devices.filter(({ id }) => !devices.some(({ parent }) => parent === id));
  }
}

const isReported = (crash: Crash | undefined, nowMs: number): crash is Crash => crash !== undefined && nowMs - crash.timeMs < REPORTED_MS;

function findingOf({ segfault: { pid, name, file } }: Crash): Finding {
  const message = `${name} (PID ${pid}) crashed in ${file}`;
  return declaredFinding(logConditions.NcclSegfault, 'SegmentationFault', { status: true, message });
}
