import { closeSync, type Dirent, type FSWatcher, fstatSync, mkdirSync, openSync, readdirSync, statSync, watch } from 'node:fs';
import { basename, join } from 'node:path';

/** Opens the file itself and not what it stands for: of a socket there is nothing else to open. Linux: O_PATH. */
const O_PATH = 0o10000000;

interface Found {
  /** Another one each time a socket is put there. */
  readonly version: number;
  readonly descriptor: number;
}

/** The sockets of a folder and those below it, as the kernel tells of them. */
export class RegistryWatch {
  readonly #directory: string;
  readonly #watches = new Map<string, FSWatcher>();
  readonly #found = new Map<string, Found>();
  #events = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  start(): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o755 });
    this.#follow(this.#directory);
  }

  stop(): void {
    for (const folder of [...this.#watches.keys()]) this.#unwatch(folder);
    for (const path of [...this.#found.keys()]) this.#lose(path);
  }

  /** By path, a number that is another one each time a socket is put there. */
  found(): ReadonlyMap<string, number> {
    return new Map([...this.#found].map(([path, { version }]) => [path, version]));
  }

  /** What is there already counts as new; here, and only here, a dot in front of a folder's name does not hide it. */
  #follow(folder: string): void {
    this.#watch(folder);
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) this.#follow(path);
      else this.#came(path);
    }
  }

  #watch(folder: string): void {
    if (this.#watches.has(folder)) return;
    try {
      const watcher = watch(folder, { persistent: false }, (event, name) => {
        if (event === 'rename' && name !== null) this.#changed(join(folder, name));
      });
      watcher.on('error', () => this.#unwatch(folder));
      this.#watches.set(folder, watcher);
    } catch {
      // It went away meanwhile.
    }
  }

  #unwatch(folder: string): void {
    this.#watches.get(folder)?.close();
    this.#watches.delete(folder);
  }

  /** Something came or went; which of the two the file says. */
  #changed(path: string): void {
    const state = statSync(path, { throwIfNoEntry: false });
    if (state === undefined) {
      this.#unwatch(path);
      // One that was moved away is still there under another name, and the kubelet does not notice.
      const found = this.#found.get(path);
      if (found !== undefined && fstatSync(found.descriptor).nlink === 0) this.#lose(path);
    } else if (!basename(path).startsWith('.')) {
      if (state.isDirectory()) this.#follow(path);
      else this.#came(path);
    }
  }

  #came(path: string): void {
    if (basename(path).startsWith('.') || statSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
    this.#lose(path);
    try {
      this.#events += 1;
      this.#found.set(path, { version: this.#events, descriptor: openSync(path, O_PATH) });
    } catch {
      // It went away meanwhile.
    }
  }

  #lose(path: string): void {
    const found = this.#found.get(path);
    if (found !== undefined) closeSync(found.descriptor);
    this.#found.delete(path);
  }
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}
