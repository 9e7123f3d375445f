import { closeSync, constants, fstatSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { StepGuard } from '../../host/fs/step-guard.ts';
import { errnoName, type Tree } from '../../host/fs/tree.ts';
import { type Host, treeAt } from '../../host/host.ts';
import { requireKoffi } from '../../host/koffi.ts';
import { minutes } from '../../model/duration.ts';
import type { NvmeOptions, ProblemCode } from './declaration.ts';
import { decodeSmartLog, parseSmartJson, SMART_LOG_BYTES, type SmartLog } from './smart-log.ts';

/** Bytes of `struct nvme_admin_cmd`. Linux include/uapi/linux/nvme_ioctl.h. */
const COMMAND_BYTES = 72;
/** `_IOWR('N', 0x41, struct nvme_admin_cmd)`. */
const NVME_IOCTL_ADMIN_CMD = 0xc0484e41;
/** Get Log Page: the only command that the agent sends. It changes nothing on the drive. */
const GET_LOG_PAGE = 0x02;
const SMART_LOG = 0x02;
/** Retain Asynchronous Event: without it the read would clear an event that the kernel waits for. */
const RETAIN_EVENT = 1 << 15;
/** The log of the whole controller. */
const ALL_NAMESPACES = 0xffff_ffff;

/** Returns the log, or why there is none. `isRefused`: the kernel does not let the agent do it. */
type SmartAnswer =
  | { readonly bytes: Buffer; readonly error?: undefined }
  | { readonly bytes?: undefined; readonly error: string; readonly isRefused: boolean };

/** The system call `ioctl`, and the address of memory for it. */
export interface IoctlLibrary {
  /** Returns -1 and sets the error, or the status code of the drive: 0 for success. */
  ioctl(descriptor: number, request: number, command: Buffer): number;
  /** Name of the last error, as ENOTTY. */
  error(): string;
  addressOf(memory: Buffer): bigint;
}

/** Loads `ioctl` from the C library of the process, or from another file. Throws when it cannot be loaded. */
export function loadIoctl(file: string | null = null): IoctlLibrary {
  const koffi = requireKoffi();
  const call = koffi.load(file).func('int ioctl(int descriptor, unsigned long request, ...)');
  const names = new Map(Object.entries(koffi.os.errno).map(([name, code]) => [code, name]));
  return {
    ioctl: (descriptor, request, command) => call(descriptor, request, 'void *', command) as number,
    error: () => names.get(koffi.errno()) ?? 'EUNKNOWN',
    addressOf: (memory) => BigInt(koffi.address(memory) as number | bigint),
  };
}

/**
 * Encodes the command that reads the SMART log into memory at an address. The timeout stays 0, which is the kernel's own: a shorter one
 * would make the kernel reset a slow drive.
 */
export function encodeSmartCommand(address: bigint): Buffer {
  const command = Buffer.alloc(COMMAND_BYTES);
  command.writeUInt8(GET_LOG_PAGE, 0);
  command.writeUInt32LE(ALL_NAMESPACES, 4);
  command.writeBigUInt64LE(address, 24);
  command.writeUInt32LE(SMART_LOG_BYTES, 36);
  // Number of 4-byte words less one in the upper half.
  command.writeUInt32LE((((SMART_LOG_BYTES / 4 - 1) << 16) | RETAIN_EVENT | SMART_LOG) >>> 0, 40);
  return command;
}

const REFUSED: ReadonlySet<string> = new Set(['EACCES', 'EPERM']);

/**
 * Reads the SMART log through the device node of a controller. `deviceNumber` is the text of the controller's `dev` file: a node with
 * another number belongs to another device and is not used.
 */
function readSmartLog(library: IoctlLibrary, path: string, deviceNumber: string | undefined): SmartAnswer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const status = fstatSync(descriptor, { bigint: true });
    if (!status.isCharacterDevice()) return { error: `${path} is no character device`, isRefused: false };
    if (deviceNumber !== numberOf(status.rdev)) return { error: `${path} is the node of another device`, isRefused: false };
    // Memory of its own, which does not move while the drive writes to it.
    const log = Buffer.from(new ArrayBuffer(SMART_LOG_BYTES));
    const result = library.ioctl(descriptor, NVME_IOCTL_ADMIN_CMD, encodeSmartCommand(library.addressOf(log)));
    if (result === 0) return { bytes: log };
    if (result > 0) return { error: `the drive answers with status 0x${result.toString(16)}`, isRefused: false };
    const error = library.error();
    return { error: `NVME_IOCTL_ADMIN_CMD fails with ${error}`, isRefused: REFUSED.has(error) };
  } catch (failure) {
    const error = errnoName(failure);
    return { error: `opening ${path} fails with ${error}`, isRefused: REFUSED.has(error) };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** `major:minor` of a device number, as sysfs prints it. The bits are those of glibc's gnu_dev_major and gnu_dev_minor. */
export function numberOf(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xffff_f000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffff_ff00n);
  return `${major}:${minor}`;
}

/** Result of one read of the log: the log, or the problem that prevented the read. */
export type SmartResult =
  | { readonly log: SmartLog; readonly problem?: undefined }
  | { readonly log?: undefined; readonly problem: { readonly code: ProblemCode; readonly message: string } };

/** The facts of a drive by which its log is found. */
interface SmartDrive {
  /** `nvme0` */
  readonly name: string;
  /** Text of the controller's `dev` file: `241:0`. */
  readonly deviceNumber?: string;
  readonly serial?: string;
}

/** An older file is not used: the drive may have changed since. */
const MOST_AGE_MS = minutes(30);

/**
 * Reads SMART logs by an admin command, or from files that another program writes. Without either option it reads nothing. The command is
 * the only reason why a probe opens a device node: it opens the node read-only for one command, and only when the administrator asked for it.
 */
export class SmartReader {
  readonly #host: Host;
  readonly #useCommand: boolean;
  readonly #directory: string;
  readonly #files: Tree;
  readonly #load: () => IoctlLibrary;
  #library: IoctlLibrary | { readonly failure: string } | undefined;

  /** `load` is the C library of the process, except in tests. */
  constructor(host: Host, options: NvmeOptions, load: () => IoctlLibrary = loadIoctl) {
    this.#host = host;
    this.#useCommand = options.smart;
    this.#directory = options['smart-directory'];
    this.#files = treeAt(host, this.#directory);
    this.#load = load;
  }

  get isOn(): boolean {
    return this.#useCommand || this.#directory !== '';
  }

  /** Sends a command when the administrator allowed it, because a file may be older. */
  read(drive: SmartDrive): SmartResult {
    return this.#useCommand ? this.#byCommand(drive, this.#host.sys.guard) : this.#byFile(drive);
  }

  #byCommand({ name, deviceNumber }: SmartDrive, guard: StepGuard | undefined): SmartResult {
    this.#library ??= this.#loaded();
    const library = this.#library;
    if ('failure' in library) return failed('smart-failed', `the C library cannot be called: ${library.failure}`);
    if (guard?.enter(`nvme/${name}/ioctl`, 'call') !== undefined)
      return failed('smart-failed', `an earlier command to ${name} still hangs`);
    const answer = readSmartLog(library, this.#host.dev.path(name), deviceNumber);
    guard?.leave();
    if (answer.bytes === undefined) return failed(answer.isRefused ? 'smart-refused' : 'smart-failed', answer.error);
    const log = decodeSmartLog(answer.bytes);
    return log === undefined ? failed('smart-failed', `the log of ${name} holds only zeros or only ones`) : { log };
  }

  #loaded(): IoctlLibrary | { readonly failure: string } {
    try {
      return this.#load();
    } catch (error) {
      return { failure: (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '' };
    }
  }

  /** The serial number names the file, because the number of a controller may belong to another drive after a hot-plug. */
  #byFile({ name, serial = '' }: SmartDrive): SmartResult {
    if (!/^[\w.-]+$/.test(serial) || serial.startsWith('.'))
      return failed('smart-file', `the serial number of ${name} is unknown, or no name of a file`);
    const file = `${serial}.json`;
    const path = join(this.#directory, file);
    let ageMs: number;
    try {
      ageMs = this.#host.clock.now() - statSync(path).mtimeMs;
    } catch (failure) {
      return failed('smart-file', `${path}: ${errnoName(failure)}`);
    }
    if (ageMs > MOST_AGE_MS) return failed('smart-file', `${path} was last written more than 30 minutes ago`);
    const { text, error } = this.#files.read(file);
    if (error !== undefined) return failed('smart-file', `${path}: ${error}`);
    const log = parseSmartJson(text);
    return log === undefined ? failed('smart-file', `${path} holds no output of nvme smart-log -o json`) : { log };
  }
}

const failed = (code: ProblemCode, message: string): SmartResult => ({ problem: { code, message } });
