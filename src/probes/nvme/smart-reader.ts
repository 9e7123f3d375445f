import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { StepRecord } from '../../host/fs/step-record.ts';
import { errnoName, type Tree } from '../../host/fs/tree.ts';
import { type Host, treeAt } from '../../host/host.ts';
import { minutes } from '../../model/duration.ts';
import { type IoctlLibrary, loadIoctl, readSmartLog } from './admin-command.ts';
import type { NvmeOptions } from './options.ts';
import type { ProblemCode } from './problems.ts';
import { decodeSmartLog, parseSmartJson, type SmartLog } from './smart-log.ts';

/** Result of one read of the log: the log, or the problem that prevented the read. */
export type SmartResult =
  | { readonly log: SmartLog; readonly problem?: undefined }
  | { readonly log?: undefined; readonly problem: { readonly code: ProblemCode; readonly message: string } };

/** The facts of a drive by which its log is found. */
export interface SmartDrive {
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

  #byCommand({ name, deviceNumber }: SmartDrive, guard: StepRecord | undefined): SmartResult {
    this.#library ??= this.#loaded();
    const library = this.#library;
    if ('failure' in library) return failed('smart-failed', `the C library cannot be called: ${library.failure}`);
    if (guard?.enter(`nvme/${name}/ioctl`, 'call') === false) return failed('smart-failed', `an earlier command to ${name} still hangs`);
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
