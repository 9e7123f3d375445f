import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Capture,
  CHECKPOINT,
  DIRECTORY_OPTION,
  type Frame,
  type FrameCall,
  KERNEL_LOG,
  KERNEL_LOG_OPTION,
} from '../../capture/frame.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { RecordedCommands } from './recorded-commands.ts';
import { RecordedKubelet } from './recorded-kubelet.ts';
import { TreePlayer } from './tree-player.ts';

/**
 * Options of the captured agent that a replay takes over. The archive is of somebody else, so it must not choose addresses, files and
 * programs of this machine.
 */
const TAKEN =
  /^(?:probe\.|device\.|labels\.|refresh\.(?:stale-after|interval)$|podresources\.(?:timeout|restart-grace|hold|min-interval|max-message-bytes)$|usage\.(?:zero-for|linger|absent-for|[a-z]+-after|dirty-mib|allowed-processes)$|incidents\.keep$)/;
const OF_THIS_MACHINE = /(?:-path|-library|-file|-directory|-dir|socket|kmsg)$/;
const isTaken = ([key, value]: readonly [string, string]): boolean =>
  TAKEN.test(key) && !OF_THIS_MACHINE.test(key) && !/(?:^|,)[/.~]/.test(value);
/** Options that name a program. The replay has a small program in its place. */
const NAMES_PROGRAM = /^probe\.[^.]+\.[a-z-]*-path$/;
/** Parts of the configuration file that a replay takes over. */
const PARTS: readonly string[] = ['join.rules', 'health', 'plugin.resources', 'expect', 'usage.idle'];

/** A captured node as files, small programs and a kubelet, in one temporary directory. It plays one frame after the other. */
export class ReplayNode {
  readonly root: string;
  readonly #capture: Capture;
  readonly #families: readonly DeviceFamily[];
  readonly #tree: TreePlayer;
  readonly #commands: RecordedCommands;
  readonly #kubelet: RecordedKubelet;
  readonly #calls = new Map<string, FrameCall>();
  #next = 0;

  /** `laterMs`: by how much the wall clock of the replay is ahead of that of the capture. */
  constructor(capture: Capture, families: readonly DeviceFamily[], laterMs = 0) {
    this.#capture = capture;
    this.#families = families;
    this.root = mkdtempSync(join(tmpdir(), 'device-agent-replay-'));
    for (const folder of ['sys', 'proc', 'dev', 'share', 'bin', 'kubelet', 'claims', 'plugins']) mkdirSync(join(this.root, folder));
    this.#tree = new TreePlayer(this.root, laterMs);
    this.#commands = new RecordedCommands(join(this.root, 'bin'));
    this.#kubelet = new RecordedKubelet(this.#socket);
    writeFileSync(this.#configFile, JSON.stringify(nested(capture.manifest.parts)));
  }

  /** Number of the frames that were played. */
  get played(): number {
    return this.#next;
  }

  get nextFrame(): Frame | undefined {
    return this.#capture.frames[this.#next];
  }

  /** Gives the node the state after the next frame. Throws an archive's problem for a frame that must not be played. */
  async step(): Promise<Frame> {
    const frame = this.nextFrame;
    if (frame === undefined) throw new Error('there is no further frame');
    this.#next += 1;
    this.#tree.apply(frame, this.#kernelLog);
    this.#commands.apply(frame);
    this.#answers(frame);
    await this.#kubelet.apply(frame);
    return frame;
  }

  /** Returns the options that make an agent read this node as the captured agent read its own. */
  options(): Readonly<Record<string, string>> {
    const { options } = this.#capture.manifest;
    const cdi = (options['cdi.dirs'] ?? '').split(',').filter((path) => path !== '');
    const programs = Object.entries(options).filter(([key]) => NAMES_PROGRAM.test(key));
    const logs = Object.keys(options).filter((key) => KERNEL_LOG_OPTION.test(key));
    const directories = Object.entries(options).filter(([key, path]) => DIRECTORY_OPTION.test(key) && path !== '');
    const flags: Record<string, string> = {
      ...Object.fromEntries(Object.entries(options).filter(isTaken)),
      'path.sysfs': join(this.root, 'sys'),
      'path.procfs': join(this.root, 'proc'),
      'path.dev': join(this.root, 'dev'),
      'path.share': join(this.root, 'share'),
      'path.recorded-errors': this.#tree.errorsFile,
      'podresources.socket': this.#socket,
      'podresources.checkpoint': options['podresources.checkpoint'] === '' ? '' : join(this.root, CHECKPOINT),
      'dra.metadata-dir': options['dra.metadata-dir'] === '' ? '' : join(this.root, 'claims'),
      'cdi.dirs': cdi.map((_, index) => join(this.root, `cdi${index}`)).join(','),
      'plugin.dir': join(this.root, 'plugins'),
      'state.file': join(this.root, 'state', 'health.json'),
      ...Object.fromEntries(programs.map(([key, program]) => [key, this.#commands.programFor(program)])),
      ...Object.fromEntries(logs.map((key) => [key, join(this.root, this.#kernelLog)])),
      ...Object.fromEntries(directories.map(([key]) => [key, join(this.root, 'directory', key)])),
      ...this.#familyOptions(),
      'config.file': this.#configFile,
    };
    return flags;
  }

  /** Lets the reads that hang return. */
  release(): void {
    this.#tree.release();
  }

  /** Stops everything and removes the directory. */
  stop(): void {
    this.#kubelet.stop();
    this.#tree.release();
    rmSync(this.root, { recursive: true, force: true });
  }

  get #socket(): string {
    return join(this.root, 'kubelet', 'kubelet.sock');
  }

  get #configFile(): string {
    return join(this.root, 'device-agent.yaml');
  }

  get #answersFile(): string {
    return join(this.root, 'library.json');
  }

  get #hasLibrary(): boolean {
    return this.#capture.frames.some(({ library }) => library.length > 0);
  }

  /** Path of the kernel log in the capture. */
  get #kernelLog(): string {
    const { options } = this.#capture.manifest;
    return Object.entries(options).some(([key, path]) => KERNEL_LOG_OPTION.test(key) && path !== '') ? KERNEL_LOG : 'dev/kmsg';
  }

  /** Options that families need in a replay. */
  #familyOptions(): Readonly<Record<string, string>> {
    const { options } = this.#capture.manifest;
    const answers = { hasAnswers: this.#hasLibrary, answersFile: this.#answersFile };
    return Object.fromEntries(
      this.#families.flatMap(({ name, replayOptions }) => {
        const prefix = `probe.${name}.`;
        const given = Object.entries(options).flatMap(([key, value]) =>
          key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [],
        );
        const own = replayOptions?.({ options: Object.fromEntries(given), ...answers }) ?? {};
        return Object.entries(own).map(([option, value]) => [prefix + option, value] as const);
      }),
    );
  }

  #answers({ library }: Frame): void {
    if (library.length === 0) return;
    for (const call of library) {
      const before = call.memory.map((memory) => memory.before);
      const key = JSON.stringify(call.event ?? [call.symbol, call.types, call.values, before]);
      // The latest answer is the last one in the file.
      this.#calls.delete(key);
      this.#calls.set(key, call);
    }
    writeFileSync(`${this.#answersFile}.new`, JSON.stringify([...this.#calls.values()]));
    renameSync(`${this.#answersFile}.new`, this.#answersFile);
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
