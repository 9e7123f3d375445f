import { dirname, join, relative } from 'node:path';
import type { Observation } from '../model/observation.ts';
import { isTreePath } from './entry-name.ts';
import type { Frame } from './frame.ts';
import type { Places } from './places.ts';

type TreeFrame = Pick<Frame, 'files' | 'links' | 'directories' | 'unread' | 'errors' | 'removed'>;
type TreeObservation = Extract<Observation, { kind: 'file' | 'error' | 'directory' | 'link' | 'present' | 'absent' }>;

/** Largest file of a capture. Files of sysfs have 64 KiB at most; the kubelet's checkpoint of 1,000 pods has less than 4 MiB. */
export const MOST_FILE_BYTES = 4 * 2 ** 20;
/** Content that a replay gives to a file that was not read. */
const UNREAD = 'ENODATA';

/** Known facts of one path. */
type Known =
  | { readonly kind: 'file'; readonly bytes: Uint8Array }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'directory' | 'unread' };

/** Keeps what is known of the files of the machine, and returns what changed since the last frame. */
export class TreeLog {
  readonly #places: Places;
  readonly #known = new Map<string, Known>();
  readonly #errors = new Map<string, string>();
  #changed = new Set<string>();
  #removed = new Set<string>();

  constructor(places: Places) {
    this.#places = places;
  }

  take(observation: TreeObservation): void {
    const path = this.#places.of(observation.path);
    // A process that may create files could choose a name that makes the archive unreadable.
    if (path === undefined || !isTreePath(path)) return;
    switch (observation.kind) {
      case 'file':
        this.#file(path, observation.bytes);
        break;
      case 'error':
        // The reader of the kernel log reports absence as an error.
        if (observation.errno === 'ENOENT' || observation.errno === 'ENOTDIR') this.#remove(path);
        else this.#error(path, observation.errno);
        break;
      case 'directory':
        this.#directory(path, observation.entries);
        break;
      case 'link':
        this.#link(path, dirname(observation.path), observation.target);
        break;
      case 'present':
        this.#present(path, observation.entry);
        break;
      case 'absent':
        this.#remove(path);
    }
  }

  /** Returns the changes since the last call. */
  cut(): TreeFrame {
    const frame = {
      files: {} as Record<string, Uint8Array>,
      links: {} as Record<string, string>,
      directories: [] as string[],
      unread: [] as string[],
      errors: { ...Object.fromEntries(this.#unreadErrors()), ...Object.fromEntries(this.#errors) },
      removed: [...this.#removed],
    };
    for (const path of [...this.#changed].sort()) {
      const known = this.#known.get(path);
      if (known?.kind === 'file') frame.files[path] = known.bytes;
      else if (known?.kind === 'link') frame.links[path] = known.target;
      else if (known?.kind === 'directory') frame.directories.push(path);
      else if (known?.kind === 'unread') frame.unread.push(path);
    }
    this.#changed = new Set();
    this.#removed = new Set();
    return frame;
  }

  #unreadErrors(): [string, string][] {
    return [...this.#known].flatMap(([path, { kind }]): [string, string][] => (kind === 'unread' ? [[path, UNREAD]] : []));
  }

  #error(path: string, errno: string): void {
    this.#errors.set(path, errno);
    if (!this.#known.has(path)) this.#set(path, { kind: 'unread' });
  }

  #file(path: string, bytes: Uint8Array): void {
    if (bytes.length > MOST_FILE_BYTES) {
      this.#errors.set(path, 'too-large');
      this.#set(path, { kind: 'unread' });
      return;
    }
    this.#errors.delete(path);
    const known = this.#known.get(path);
    if (known?.kind === 'file' && Buffer.from(known.bytes).equals(bytes)) return;
    this.#set(path, { kind: 'file', bytes });
  }

  /** A name that a directory no longer lists is gone. */
  #directory(path: string, entries: Extract<Observation, { kind: 'directory' }>['entries']): void {
    this.#errors.delete(path);
    this.#set(path, { kind: 'directory' });
    const names = new Set(entries.map(([name]) => name));
    for (const known of [...this.#known.keys()]) {
      const [name = ''] = known.startsWith(`${path}/`) ? known.slice(path.length + 1).split('/') : [];
      if (name !== '' && !names.has(name)) this.#remove(`${path}/${name}`);
    }
    for (const [name, kind] of entries) if (kind !== 'link' && isTreePath(`${path}/${name}`)) this.#present(`${path}/${name}`, kind);
  }

  #present(path: string, entry: string): void {
    const known = this.#known.get(path);
    if (entry === 'link' || (known !== undefined && (known.kind === 'directory') === (entry === 'directory'))) return;
    this.#set(path, { kind: entry === 'directory' ? 'directory' : 'unread' });
  }

  /** An absolute target is made relative, because a replay has another root. A target outside the places of the capture is unread. */
  #link(path: string, directory: string, target: string): void {
    const place = this.#places.of(join(target.startsWith('/') ? '/' : directory, target));
    const isPlain = /^(?:\.\.\/)*(?:\.\.|[^/]+(?:\/[^/]+)*)$/.test(target) && !/[^./]\/.*\.\.(?:\/|$)/.test(target);
    if (place === undefined) this.#set(path, { kind: 'unread' });
    else this.#set(path, { kind: 'link', target: isPlain ? target : relative(dirname(path), place) });
  }

  #set(path: string, known: Known): void {
    const before = this.#known.get(path);
    if (
      before !== undefined &&
      before.kind === known.kind &&
      (known.kind !== 'link' || known.target === (before as typeof known).target) &&
      known.kind !== 'file'
    )
      return;
    if (before !== undefined && before.kind !== known.kind) this.#removed.add(path);
    this.#known.set(path, known);
    this.#changed.add(path);
    const parent = dirname(path);
    if (parent !== '.' && this.#known.get(parent)?.kind !== 'directory') this.#set(parent, { kind: 'directory' });
  }

  #remove(path: string): void {
    for (const known of [...this.#known.keys()]) {
      if (known !== path && !known.startsWith(`${path}/`)) continue;
      this.#known.delete(known);
      this.#errors.delete(known);
      this.#changed.delete(known);
      this.#removed.add(path);
    }
    this.#errors.delete(path);
  }
}
