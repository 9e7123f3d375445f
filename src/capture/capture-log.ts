import { dirname, join, relative } from 'node:path';
import { defined } from '../model/defined.ts';
import type { Observation, ObservedCall, ObservedCommand, ObservedRequest } from '../model/observation.ts';
import {
  type CapturedCall,
  type CapturedCommand,
  type CapturedRead,
  type CapturedRequest,
  type Entry,
  fileEntry,
  isTreePath,
  type PlaceName,
} from './format.ts';

/** Largest file and largest output of a command. The kubelet's checkpoint of 1,000 pods has less than 4 MiB, a file of sysfs 64 KiB at most. */
const MOST_BYTES = 4 * 2 ** 20;
/** Most records of the kernel log: the newest ones. */
const MOST_RECORDS = 20_000;
/** It exists and nobody read it, so a replay cannot give its content. */
const UNREAD: Entry = { error: 'ENODATA' };
const ABSENT: readonly string[] = ['ENOENT', 'ENOTDIR'];

type TreeObservation = Extract<Observation, { readonly kind: 'file' | 'error' | 'directory' | 'link' | 'present' | 'absent' }>;

/** Directory or file on the machine for one place of a capture. */
export interface CapturedPlace {
  readonly name: PlaceName;
  /** Absolute path, without a slash at its end. */
  readonly path: string;
}

/** Keeps the latest of all that was read. */
export class CaptureLog {
  readonly #places: readonly CapturedPlace[];
  readonly #tree = new Map<string, Entry>();
  readonly #commands = new Map<string, CapturedCommand>();
  readonly #library = new Map<string, CapturedCall>();
  readonly #requests = new Map<string, CapturedRequest>();
  #kernelLog: string[] = [];
  #events = 0;

  /** When two places contain a path, the place with the longer path is used. */
  constructor(places: readonly CapturedPlace[]) {
    this.#places = places.filter(({ path }) => path !== '').sort((a, b) => b.path.length - a.path.length);
  }

  readonly take = (observation: Observation): void => {
    if (observation.kind === 'command') this.#command(observation);
    else if (observation.kind === 'library') this.#call(observation);
    else if (observation.kind === 'request') this.#request(observation);
    else if (observation.kind === 'kernel-log') this.#kernelLog.push(observation.text);
    else {
      const path = this.#placeOf(observation.path);
      // A process that may create files could choose a name that makes the archive unreadable.
      if (path !== undefined && isTreePath(path)) this.#path(path, observation);
    }
  };

  /** All that is known now. */
  read(times: Pick<CapturedRead, 'atMs' | 'wallMs'>): CapturedRead {
    this.#kernelLog = this.#kernelLog.slice(-MOST_RECORDS);
    return {
      ...times,
      tree: Object.fromEntries([...this.#tree].sort(([a], [b]) => (a < b ? -1 : 1))),
      kernelLog: this.#kernelLog,
      commands: [...this.#commands.values()],
      library: [...this.#library.values()],
      requests: [...this.#requests.values()],
    };
  }

  #placeOf(path: string): string | undefined {
    const place = this.#places.find((one) => path === one.path || path.startsWith(`${one.path}/`));
    return place && place.name + path.slice(place.path.length);
  }

  #path(path: string, observation: TreeObservation): void {
    switch (observation.kind) {
      case 'file':
        this.#set(path, observation.bytes.length > MOST_BYTES ? { error: 'ETOOLARGE' } : fileEntry(observation.bytes));
        break;
      case 'directory':
        this.#directory(path, observation.entries);
        break;
      case 'link':
        this.#set(path, this.#link(path, observation.path, observation.target));
        break;
      case 'present':
        this.#present(path, observation.entry);
        break;
      case 'absent':
        this.#remove(path);
        break;
      case 'error':
        this.#error(path, observation.errno);
    }
  }

  #set(path: string, entry: Entry): void {
    this.#tree.set(path, entry);
    const parent = dirname(path);
    const known = this.#tree.get(parent);
    if (parent !== '.' && (known === undefined || !('directory' in known))) this.#set(parent, { directory: true });
  }

  #error(path: string, errno: string): void {
    if (errno !== 'EISDIR') this.#remove(path);
    // The reader of the kernel log reports absence as an error.
    if (!ABSENT.includes(errno)) this.#set(path, errno === 'EISDIR' ? { directory: true } : { error: errno });
  }

  #present(path: string, entry: string): void {
    const known = this.#tree.get(path);
    const isSame = known !== undefined && 'directory' in known === (entry === 'directory');
    if (entry !== 'link' && !isSame) this.#set(path, entry === 'directory' ? { directory: true } : UNREAD);
  }

  /** A name that a directory no longer lists is gone. */
  #directory(path: string, entries: Extract<Observation, { kind: 'directory' }>['entries']): void {
    const names = new Set(entries.map(([name]) => name));
    for (const known of this.#tree.keys()) {
      const name = known.startsWith(`${path}/`) ? known.slice(path.length + 1).split('/', 1)[0] : undefined;
      if (name !== undefined && !names.has(name)) this.#remove(`${path}/${name}`);
    }
    this.#set(path, { directory: true });
    for (const [name, kind] of entries) if (isTreePath(`${path}/${name}`)) this.#present(`${path}/${name}`, kind);
  }

  /** An absolute target is made relative, because a replay has another root. A target outside the places of the capture is unread. */
  #link(path: string, full: string, target: string): Entry {
    const place = this.#placeOf(join(target.startsWith('/') ? '/' : dirname(full), target));
    const isPlain = /^(?:\.\.\/)*(?:\.\.|[^/]+(?:\/[^/]+)*)$/.test(target) && !/[^./]\/.*\.\.(?:\/|$)/.test(target);
    if (place === undefined) return UNREAD;
    return { link: isPlain ? target : relative(dirname(path), place) };
  }

  #remove(path: string): void {
    for (const known of this.#tree.keys()) if (known === path || known.startsWith(`${path}/`)) this.#tree.delete(known);
  }

  #command({ kind: _, ...command }: ObservedCommand): void {
    const isTooLarge = command.stdout.length + command.stderr.length > MOST_BYTES;
    const kept = isTooLarge ? { ...command, stdout: '', stderr: '', failure: 'too-large' } : command;
    this.#commands.set(JSON.stringify([command.program, command.args]), kept);
  }

  /** The latest answer is the last one. Each event is kept. */
  #call({ kind: _, memory, isEvent, ...call }: ObservedCall): void {
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
    const kept = { ...call, memory: memory.map(({ at, before, after }) => ({ at, before: text(before), after: text(after) })) };
    const key = JSON.stringify([call.symbol, call.types, call.values, kept.memory.map(({ before }) => before)]);
    if (isEvent === true) {
      this.#library.set(`event ${this.#events}`, { ...kept, event: this.#events });
      this.#events += 1;
    } else {
      this.#library.delete(key);
      this.#library.set(key, kept);
    }
  }

  #request({ kind: _, identity: _identity, answer, error, method }: ObservedRequest): void {
    const bytes = answer === undefined ? {} : { answer: Buffer.from(answer).toString('base64') };
    this.#requests.set(method, { method, ...bytes, ...defined({ error }) });
  }
}
