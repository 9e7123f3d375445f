import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import { parseSegfault, type Segfault } from '../../host/kernel-log/segfault.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import { logConditions } from './conditions.ts';

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
    return [raise(logConditions.NcclSegfault, 'NoCrash', { status: false, message: 'no program crashed in NCCL lately' })];
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
  return raise(logConditions.NcclSegfault, 'SegmentationFault', { status: true, message });
}
