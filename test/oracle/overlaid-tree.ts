import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, normalize, relative } from 'node:path';

/** Replacement of a path. `hang`: a FIFO whose reader blocks forever. `change`: of the present text, so that later faults still show in it. */
export type Overlay =
  | { readonly kind: 'change'; readonly change: (text: string) => string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'hang' }
  | { readonly kind: 'directory' };

/** A change of a file's content by a fault. */
interface Edit {
  readonly name: string;
  change(text: string): string;
}

/** A file or a link that is not in the machine. */
interface Absence {
  readonly name: string;
}

/** A replacement by a blinding. */
interface Cover {
  readonly name: string;
  readonly overlay: Overlay;
}

/**
 * A directory tree of a machine with layers over it. Faults change the content of files, and blindings make files unreadable. Layers can
 * be removed in any order.
 */
export class OverlaidTree {
  readonly root: string;
  readonly #files = new Map<string, string>();
  readonly #links = new Map<string, string>();
  /** Original content of files that were written later. */
  readonly #originals = new Map<string, string>();
  readonly #directories = new Set<string>();
  /** Directories that are replaced; they are renamed with the suffix {@link ASIDE}. */
  readonly #aside = new Set<string>();
  /** Present names of entries that the kernel renamed, keyed by path. */
  readonly #renamed = new Map<string, string>();
  /** Keyed by path, in the order of their begin. */
  readonly #edits = new Map<string, readonly Edit[]>();
  /** Keyed by path. */
  readonly #absences = new Map<string, readonly Absence[]>();
  /** Keyed by path; the last one applies. */
  readonly #covers = new Map<string, readonly Cover[]>();

  constructor(root: string) {
    this.root = root;
  }

  build(files: Readonly<Record<string, string>>, links: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) this.#files.set(path, text);
    for (const [path, target] of Object.entries(links)) this.#links.set(path, target);
    for (const path of [...this.#files.keys(), ...this.#links.keys()]) this.#show(path);
  }

  /** Restores the machine as it was built. */
  reset(): void {
    this.rename(new Map([...this.#renamed.keys()].map((path) => [path, basename(path)])));
    const touched = [...new Set([...this.#edits.keys(), ...this.#absences.keys(), ...this.#covers.keys()])];
    this.#edits.clear();
    this.#absences.clear();
    this.#covers.clear();
    // Deeper paths first, because the path of a renamed directory depends on its parents.
    for (const path of touched.sort((a, b) => b.length - a.length)) this.#show(path);
    for (const [path, text] of this.#originals) {
      this.#files.set(path, text);
      this.#show(path);
    }
    this.#originals.clear();
  }

  /** Content of a path with faults but without blindings. */
  text(path: string): string {
    return (this.#edits.get(path) ?? []).reduce((text, { change }) => change(text), this.#files.get(path) ?? '');
  }

  /** Changes the content permanently: a counter that grows, a log that grows. */
  write(path: string, change: (text: string) => string): void {
    const before = this.#files.get(path) ?? '';
    if (!this.#originals.has(path)) this.#originals.set(path, before);
    this.#files.set(path, change(before));
    this.#show(path);
  }

  /**
   * Gives entries other names, all at once, as when two devices swap theirs. Paths stay those of the machine as it was built. A link leads to
   * its target under the other name.
   */
  rename(names: ReadonlyMap<string, string>): void {
    // Deeper entries step aside first, and get their names last, because their place depends on the names above.
    const deepestFirst = [...names].sort(([a], [b]) => b.split('/').length - a.split('/').length);
    const aside = deepestFirst.flatMap(([path, name], at): [string, string, string][] => {
      const from = this.#place(path);
      const isThere = existsSync(from) || isLink(from);
      if (isThere) renameSync(from, `${from}.renaming-${at}`);
      else this.#renamed.set(path, name);
      return isThere ? [[path, name, `${basename(from)}.renaming-${at}`]] : [];
    });
    for (const [path, name, at] of aside.reverse()) {
      this.#renamed.set(path, name);
      const to = this.#place(path);
      renameSync(join(dirname(to), at), to);
    }
    for (const [path, link] of names.size === 0 ? [] : this.#links) {
      const [full, target] = [this.#place(path), this.#target(path, link)];
      if (!isLink(full) || readlinkSync(full) === target) continue;
      rmSync(full);
      symlinkSync(target, full);
    }
  }

  /** Replaces a directory by another one with the same files, as when other hardware takes the place. */
  renew(path: string): void {
    const full = this.#place(path);
    if (!existsSync(full)) return;
    // The old directory stays until the new one is complete, so that both differ.
    renameSync(full, `${full}.old`);
    for (const each of [...this.#files.keys(), ...this.#links.keys()]) if (each.startsWith(`${path}/`)) this.#show(each);
    removeAll(`${full}.old`);
  }

  /** Begins a fault that replaces the content of a file. */
  put(name: string, path: string, text: string): void {
    this.edit(name, path, () => text);
  }

  /** Begins a fault that changes a part of the content. */
  edit(name: string, path: string, change: (text: string) => string): void {
    this.#edits.set(path, [...(this.#edits.get(path) ?? []), { name, change }]);
    this.#show(path);
  }

  /** Takes a file or a link out of the machine. */
  remove(name: string, path: string): void {
    this.#absences.set(path, [...(this.#absences.get(path) ?? []), { name }]);
    this.#show(path);
  }

  /** Begins a blinding that replaces a path. */
  hide(name: string, path: string, overlay: Overlay): void {
    this.#covers.set(path, [...(this.#covers.get(path) ?? []), { name, overlay }]);
    this.#show(path);
  }

  /** Whether the path, a parent or a child is replaced. */
  isCovered(path: string): boolean {
    const isWithin = (inner: string, outer: string): boolean => inner === outer || inner.startsWith(`${outer}/`);
    return [...this.#covers.keys()].some((other) => isWithin(path, other) || isWithin(other, path));
  }

  /** Ends a fault, an absence or a blinding on all paths. */
  take(name: string): void {
    for (const layers of [this.#edits, this.#absences, this.#covers] as Map<string, readonly { readonly name: string }[]>[]) {
      for (const [path, own] of layers) {
        const left = own.filter((layer) => layer.name !== name);
        if (left.length === own.length) continue;
        if (left.length === 0) layers.delete(path);
        else layers.set(path, left);
        this.#show(path);
      }
    }
  }

  isHung(fullPath: string): boolean {
    return existsSync(fullPath) && lstatSync(fullPath).isFIFO();
  }

  #show(path: string): void {
    const overlay = this.#covers.get(path)?.at(-1)?.overlay;
    const isAbsent = this.#absences.has(path);
    const file = isAbsent || !this.#files.has(path) ? undefined : this.text(path);
    const link = isAbsent ? undefined : this.#links.get(path);
    if (file === undefined && link === undefined && this.#isDirectory(path)) {
      this.#showDirectory(path, overlay);
      return;
    }
    const full = this.#place(path);
    if (overlay === undefined && file !== undefined && this.#overwrite(full, file, path)) return;
    removeAll(full);
    mkdirSync(dirname(full), { recursive: true });
    if (overlay?.kind === 'change') writeFileSync(full, overlay.change(this.text(path)));
    else if (overlay !== undefined) this.#substitute(full, overlay);
    else if (file !== undefined) writeFileSync(full, file);
    else if (link !== undefined) symlinkSync(this.#target(path, link), full);
    if (path.startsWith('bin/') && existsSync(full) && lstatSync(full).isFile()) chmodSync(full, 0o755);
  }

  #isDirectory(path: string): boolean {
    if (this.#directories.size === 0) {
      for (const other of [...this.#files.keys(), ...this.#links.keys()]) {
        for (let at = dirname(other); at !== '.'; at = dirname(at)) this.#directories.add(at);
      }
    }
    return this.#directories.has(path);
  }

  #showDirectory(path: string, overlay: Overlay | undefined): void {
    const full = this.#place(path);
    if (this.#aside.has(path)) removeAll(full);
    else if (overlay !== undefined) {
      empty(full);
      renameSync(full, `${full}${ASIDE}`);
    }
    if (overlay === undefined) {
      renameSync(`${full}${ASIDE}`, full);
      this.#aside.delete(path);
      for (const each of this.#files.keys()) if (each.startsWith(`${path}/`)) this.#show(each);
      return;
    }
    this.#aside.add(path);
    this.#substitute(full, overlay);
  }

  #substitute(full: string, overlay: Overlay): void {
    if (overlay.kind === 'hang') execFileSync('mkfifo', [full]);
    else if (overlay.kind === 'directory') mkdirSync(full);
    else if (overlay.kind === 'text') writeFileSync(full, overlay.text);
  }

  /** Real location of a path while directories above it are renamed. */
  #place(path: string): string {
    const names = path.split('/');
    const shown = names.map((built, at) => {
      const prefix = names.slice(0, at + 1).join('/');
      const name = this.#renamed.get(prefix) ?? built;
      return at < names.length - 1 && this.#aside.has(prefix) ? `${name}${ASIDE}` : name;
    });
    return join(this.root, ...shown);
  }

  /** What a link holds under the present names. */
  #target(path: string, link: string): string {
    const named = (built: string): string => {
      const names = built.split('/');
      return names.map((name, at) => this.#renamed.get(names.slice(0, at + 1).join('/')) ?? name).join('/');
    };
    return relative(dirname(named(path)), named(normalize(join(dirname(path), link))));
  }

  /** Writes in place, like the kernel, so that a followed log continues. */
  #overwrite(full: string, text: string, path: string): boolean {
    if (path.startsWith('bin/') || !existsSync(full) || !lstatSync(full).isFile()) return false;
    const fd = openSync(full, 'w');
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
    return true;
  }
}

const ASIDE = '.aside';

/** Removes a path. Its files hold nothing first, because the kernel gives nothing of a removed attribute to those who have it open. */
function removeAll(full: string): void {
  empty(full);
  rmSync(full, { recursive: true, force: true });
}

function empty(full: string): void {
  const stat = lstatSync(full, { throwIfNoEntry: false });
  if (stat?.isDirectory()) for (const name of readdirSync(full)) empty(join(full, name));
  else if (stat?.isFile()) truncateSync(full);
}

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
