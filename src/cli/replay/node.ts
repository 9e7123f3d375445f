import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import type { CapturedCommand, CapturedRead, CapturedRequest } from '../../capture/format.ts';
import { type Capture, CHECKPOINT, DIRECTORY_OPTION, KERNEL_LOG, KERNEL_LOG_OPTION } from '../../capture/format.ts';
import type { Flags } from '../../config/configuration.ts';
import type { Registry } from '../../config/registry.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { bindGrpc, makeRenamedSocket } from '../../sim/kubelet/sockets.ts';
import { endReads, writeTree } from './tree.ts';

/**
 * Options of the captured agent that a replay takes over. The archive is of somebody else, so it must not choose addresses, files and
 * programs of this machine.
 */
const TAKEN =
  /^(?:probe\.|device\.|labels\.|refresh\.(?:stale-after|interval|slow|facts)$|podresources\.(?:timeout|restart-grace|hold)$|usage\.(?:[a-z]+-after|dirty-mib|allowed-processes)$|incidents\.keep$)/;
const OF_THIS_MACHINE = /(?:-path|-library|-file|-directory|-dir|socket)$/;
const isTaken = ([key, value]: readonly [string, string]): boolean =>
  TAKEN.test(key) && !OF_THIS_MACHINE.test(key) && !/(?:^|,)[/.~]/.test(value);
/** Options that name a program. The replay has a small program in its place. */
const NAMES_PROGRAM = /^probe\.[^.]+\.[a-z-]*-path$/;
/** Parts of the configuration file that a replay takes over. */
const PARTS: readonly string[] = ['join.rules', 'health', 'plugin.resources', 'expect', 'usage.idle'];

/** A captured node as files, small programs and a kubelet, in one temporary directory. */
export class ReplayedNode {
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-replay-'));
  readonly #capture: Capture;
  readonly #families: readonly DeviceFamily[];
  readonly #programs = new ReplayedPrograms(join(this.root, 'bin'));
  readonly #socket = join(this.root, 'kubelet', 'kubelet.sock');
  readonly #kubelet = new ReplayedKubelet(this.#socket);
  readonly #answersFile = join(this.root, 'library.json');
  readonly #configFile = join(this.root, 'device-agent.yaml');
  readonly #laterMs: number;
  #pipes: readonly string[] = [];
  #shown: CapturedRead['tree'] = {};

  /** `laterMs`: by how much the wall clock of the replay is ahead of that of the capture. */
  constructor(capture: Capture, families: readonly DeviceFamily[], laterMs = 0) {
    this.#capture = capture;
    this.#families = families;
    this.#laterMs = laterMs;
    for (const folder of ['sys', 'proc', 'dev', 'share', 'kubelet', 'claims', 'plugins']) mkdirSync(join(this.root, folder));
    writeFileSync(this.#configFile, JSON.stringify(nested(capture.parts)));
  }

  /** Makes the node as it was at a read. Throws an archive's problem for a read that must not be played. */
  async show(read: 0 | 1): Promise<void> {
    const { tree, commands, library, requests } = this.#capture.reads[read];
    this.#pipes = writeTree(this.root, this.#capture.reads[read], this.#kernelLog, { laterMs: this.#laterMs, before: this.#shown });
    this.#shown = tree;
    this.#programs.write(commands);
    if (library.length > 0) replace(this.#answersFile, JSON.stringify(library));
    await this.#kubelet.answer(requests);
  }

  /** The options that make an agent read this node as the captured agent read its own, and `given` before them. Unknown ones are left out. */
  flags(registry: Registry, given: Flags): Flags {
    const known = new Set(registry.entries.map(({ key }) => key));
    return new Map<string, string | boolean>([...Object.entries(this.options()).filter(([key]) => known.has(key)), ...given]);
  }

  options(): Readonly<Record<string, string>> {
    const { options } = this.#capture;
    const given = Object.entries(options);
    const cdi = (options['cdi.dirs'] ?? '').split(',').filter((path) => path !== '');
    const replaced = (pattern: RegExp, by: (key: string, value: string) => string): Record<string, string> =>
      Object.fromEntries(given.filter(([key]) => pattern.test(key)).map(([key, value]) => [key, by(key, value)]));
    return {
      ...Object.fromEntries(given.filter(isTaken)),
      ...Object.fromEntries(
        [
          ['sysfs', 'sys'],
          ['procfs', 'proc'],
          ['dev', 'dev'],
          ['share', 'share'],
        ].map(([key, folder]) => [`path.${key}`, join(this.root, folder as string)]),
      ),
      [KERNEL_LOG_OPTION]: options[KERNEL_LOG_OPTION] === '' ? '' : join(this.root, this.#kernelLog),
      'podresources.socket': this.#socket,
      'podresources.checkpoint': options['podresources.checkpoint'] === '' ? '' : join(this.root, CHECKPOINT),
      'dra.metadata-dir': options['dra.metadata-dir'] === '' ? '' : join(this.root, 'claims'),
      'cdi.dirs': cdi.map((_, index) => join(this.root, `cdi${index}`)).join(','),
      'plugin.dir': join(this.root, 'plugins'),
      'state.file': join(this.root, 'state', 'health.json'),
      ...replaced(NAMES_PROGRAM, (_, program) => this.#programs.pathOf(program)),
      ...replaced(DIRECTORY_OPTION, (key, path) => (path === '' ? '' : join(this.root, 'directory', key))),
      ...this.#familyOptions(),
      'config.file': this.#configFile,
    };
  }

  /** Lets the reads that hang return. */
  endReads(): void {
    endReads(this.#pipes);
    this.#pipes = [];
  }

  /** Stops everything and removes the directory. */
  stop(): void {
    this.#kubelet.stop();
    this.endReads();
    rmSync(this.root, { recursive: true, force: true });
  }

  get #kernelLog(): string {
    return this.#capture.options[KERNEL_LOG_OPTION]?.startsWith('/') === true ? KERNEL_LOG : 'dev/kmsg';
  }

  /** Options that families need in a replay. */
  #familyOptions(): Readonly<Record<string, string>> {
    const answers = { hasAnswers: this.#capture.reads.some(({ library }) => library.length > 0), answersFile: this.#answersFile };
    const entries = this.#families.flatMap(({ name, replayOptions }) => {
      const prefix = `probe.${name}.`;
      const given = Object.entries(this.#capture.options).filter(([key]) => key.startsWith(prefix));
      const options = Object.fromEntries(given.map(([key, value]) => [key.slice(prefix.length), value]));
      return Object.entries(replayOptions?.({ options, ...answers }) ?? {}).map(([option, value]) => [prefix + option, value] as const);
    });
    return Object.fromEntries(entries);
  }
}

/** Values under dotted paths as one document. */
function nested(parts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(parts).filter(([name]) => PARTS.includes(name))) {
    const [first = '', second] = path.split('.');
    document[first] = second === undefined ? value : { ...(document[first] as object | undefined), [second]: value };
  }
  return document;
}

/** Methods that the agent calls. */
const METHODS = ['/v1.PodResourcesLister/List', '/v1.PodResourcesLister/GetAllocatableResources', '/v1alpha1.PodResourcesLister/List'];

/** A gRPC server that gives the captured answers of a kubelet, byte by byte. */
class ReplayedKubelet {
  readonly #socket: string;
  #requests: readonly CapturedRequest[] = [];
  #server: Server | undefined;

  constructor(socket: string) {
    this.#socket = socket;
  }

  /** A kubelet that was never reached has no socket, and one that refused connections has a socket without a server. */
  async answer(requests: readonly CapturedRequest[]): Promise<void> {
    this.#requests = requests;
    if (requests.length === 0) return this.stop();
    if (this.#server === undefined) await this.#start();
    if (requests.at(-1)?.error?.errno === 'ECONNREFUSED') this.#end();
  }

  stop(): void {
    this.#end();
    rmSync(this.#socket, { force: true });
  }

  async #start(): Promise<void> {
    const server = new Server();
    const same = (bytes: Buffer): Buffer => bytes;
    for (const method of METHODS)
      server.register(method, (_call: unknown, callback: Callback) => this.#call(method, callback), same, same, 'unary');
    await makeRenamedSocket(this.#socket, (path) => bindGrpc(server, path));
    this.#server = server;
  }

  #end(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #call(method: string, callback: Callback): void {
    const { answer, error } = this.#requests.find((request) => request.method === method) ?? {};
    if (answer !== undefined) callback(null, Buffer.from(answer, 'base64'));
    else callback(error ?? { code: status.UNIMPLEMENTED, details: 'this method was not called in the capture' });
  }
}

type Callback = (error: { readonly code: number; readonly details: string } | null, answer?: Buffer) => void;

/** Small programs in the place of the captured ones. They print what those printed and end as they ended. */
class ReplayedPrograms {
  readonly #directory: string;
  readonly #numbers = new Map<string, number>();

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  /** Path of the program in the place of a captured one. It has a number, because the captured name could be that of another file. */
  pathOf(program: string): string {
    const number = this.#numbers.get(program) ?? this.#numbers.size;
    this.#numbers.set(program, number);
    return join(this.#directory, `program-${number}`);
  }

  write(commands: readonly CapturedCommand[]): void {
    for (const program of new Set(commands.map((command) => command.program)))
      this.#program(
        this.pathOf(program),
        commands.filter((command) => command.program === program),
      );
  }

  #program(path: string, commands: readonly CapturedCommand[]): void {
    // A program that was not found, or that the agent may not execute, fails before it sees its arguments.
    if (commands.some(({ failure }) => failure === 'not-found')) return;
    const mode = commands.some(({ failure }) => failure === 'permission') ? 0o644 : 0o755;
    const cases = commands.map((command, index) => {
      for (const name of ['stdout', 'stderr'] as const) replace(`${path}.${index}.${name}`, command[name], 0o644);
      return `  ${quoted(command.args.join(' '))}) ${ending(command, `${path}.${index}`)} ;;`;
    });
    replace(path, `#!/bin/sh\ncase "$*" in\n${cases.join('\n')}\n  *) exit 127 ;;\nesac\n`, mode);
  }
}

function ending({ exitCode, signal, failure }: CapturedCommand, files: string): string {
  if (failure === 'timeout') return 'exec sleep 3600';
  if (failure === 'too-large') return 'exec cat /dev/zero';
  const print = `cat ${quoted(`${files}.stdout`)}; cat ${quoted(`${files}.stderr`)} >&2; `;
  return signal === undefined ? `${print}exit ${exitCode ?? 1}` : `${print}kill -${signal.slice('SIG'.length)} $$`;
}

/** Replaces a file at once: a probe may read it now. */
export function replace(path: string, text: string, mode = 0o600): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
