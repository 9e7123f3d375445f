import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { removeAsKernel } from '../../support/kernel-files.ts';
import type { Choose } from '../../support/seeded.ts';
import { COUNTERS, COUNTS, DEVICE_FILES, ODD, PORT_FILES, writeSomehow } from './random-files.ts';

const CLASS = 'sys/class/infiniband';
const VERBS = 'sys/class/infiniband_verbs';
const BUS = 'sys/bus/pci/devices';
const SLOTS = 'sys/devices/pci0000:17';

/** A machine on which HCAs, ports and files appear, disappear, change and swap places. A seed chooses the steps. */
export class RandomTree {
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-random-'));
  /** Log of the steps, for debugging a failed test. */
  readonly done: string[] = [];
  readonly #pick: Choose;
  #made = 0;

  constructor(pick: Choose) {
    this.#pick = pick;
    for (const path of ['v0/class/infiniband', 'v0/class/infiniband_verbs', 'v0/bus/pci/devices', 'v0/devices/pci0000:17', 'dev', 'proc'])
      mkdirSync(this.#at(path), { recursive: true });
    symlinkSync('v0', this.#at('sys'));
    for (let n = 0; n < 3; n += 1) this.#addHca();
  }

  change(): void {
    const rare = [
      this.#addHca,
      this.#removeHca,
      this.#replaceHca,
      this.#swapNames,
      this.#addPort,
      this.#removePort,
      this.#removeSet,
      this.#copyTree,
    ];
    const change = this.#one([...Array(7).fill(this.#changeCounter), ...Array(5).fill(this.#changeOther), ...rare]);
    this.done.push(`${change.name} ${change.call(this)}`);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #at = (path: string): string => join(this.root, path);
  #one<T>(list: readonly T[]): T {
    return list[this.#pick(list.length)] as T;
  }

  #put(path: string, text: string): void {
    mkdirSync(dirname(this.#at(path)), { recursive: true });
    writeFileSync(this.#at(path), text);
  }

  #hca(): string | undefined {
    return this.#one(readdirSync(this.#at(CLASS)));
  }

  #port(): string | undefined {
    const hca = this.#hca();
    const ports = hca === undefined ? [] : readdirSync(this.#at(`${CLASS}/${hca}/ports`));
    return ports.length === 0 ? undefined : `${CLASS}/${hca}/ports/${this.#one(ports)}`;
  }

  #changeCounter(): string {
    const set = this.#one(Object.keys(COUNTERS));
    const text = this.#pick(2) === 0 ? `${this.#pick(1_000)}\n` : this.#one(this.#pick(2) === 0 ? COUNTS : ODD);
    const port = this.#port();
    return port === undefined
      ? ''
      : writeSomehow(this.#pick, this.#at(`${port}/${set}/${this.#one(COUNTERS[set] as readonly string[])}`), text);
  }

  #changeOther(): string {
    const [place, files] = this.#pick(3) === 0 ? [`${CLASS}/${this.#hca()}`, DEVICE_FILES] : [this.#port(), PORT_FILES];
    const file = this.#one(Object.keys(files));
    return place === undefined ? '' : writeSomehow(this.#pick, this.#at(`${place}/${file}`), this.#one(files[file] as readonly string[]));
  }

  #addHca(): string {
    const slot = `0000:18:00.${this.#pick(6)}`;
    const name = `mlx5_${this.#pick(6)}`;
    if (existsSync(this.#at(`${SLOTS}/${slot}`)) || existsSync(this.#at(`${CLASS}/${name}`))) return 'not free';
    this.#put(`${SLOTS}/${slot}/power_state`, 'D0\n');
    this.#put(`${SLOTS}/${slot}/aer_dev_correctable`, `RxErr ${this.#pick(9)}\n`);
    this.#makeHca(`${SLOTS}/${slot}/infiniband/${name}`);
    symlinkSync(`../../../devices/pci0000:17/${slot}`, this.#at(`${BUS}/${slot}`));
    this.#name(slot, name);
    return `${name} in ${slot}`;
  }

  #name(slot: string, name: string): void {
    symlinkSync(`../../devices/pci0000:17/${slot}/infiniband/${name}`, this.#at(`${CLASS}/${name}`));
    this.#put(`${VERBS}/uverbs${slot.at(-1)}/ibdev`, `${name}\n`);
  }

  #makeHca(directory: string): void {
    for (const [file, texts] of Object.entries(DEVICE_FILES)) this.#put(`${directory}/${file}`, this.#one(texts));
    for (let port = this.#pick(2); port >= 0; port -= 1) this.#makePort(`${directory}/ports/${port + 1}`);
  }

  #makePort(directory: string): void {
    for (const [file, texts] of Object.entries(PORT_FILES)) this.#put(`${directory}/${file}`, this.#one(texts));
    for (const [set, files] of Object.entries(COUNTERS))
      for (const file of files) if (this.#pick(4) > 0) this.#put(`${directory}/${set}/${file}`, `${this.#pick(100)}\n`);
  }

  #removeHca(): string {
    const hca = this.#hca();
    if (hca === undefined) return '';
    const slot = this.#slotOf(hca);
    for (const path of [`${CLASS}/${hca}`, `${BUS}/${slot}`, `${SLOTS}/${slot}`, `${VERBS}/uverbs${slot.at(-1)}`])
      removeAsKernel(this.#at(path));
    return hca;
  }

  #slotOf(hca: string): string {
    return basename(dirname(dirname(realpathSync(this.#at(`${CLASS}/${hca}`)))));
  }

  #replaceHca(): string {
    const hca = this.#hca();
    if (hca === undefined) return '';
    const directory = `${SLOTS}/${this.#slotOf(hca)}/infiniband/${hca}`;
    renameSync(this.#at(directory), this.#at(`old${this.#made++}`));
    this.#makeHca(directory);
    return hca;
  }

  #swapNames(): string {
    const [one, other] = [this.#hca(), this.#hca()];
    if (one === undefined || other === undefined || one === other) return '';
    const slots = [this.#slotOf(one), this.#slotOf(other)] as const;
    for (const [slot, from, to] of [
      [slots[0], one, other],
      [slots[1], other, one],
    ] as const) {
      renameSync(this.#at(`${SLOTS}/${slot}/infiniband/${from}`), this.#at(`${SLOTS}/${slot}/infiniband/${to}`));
      rmSync(this.#at(`${CLASS}/${to}`));
      this.#name(slot, to);
    }
    return `${one} and ${other}`;
  }

  #addPort(): string {
    const port = `${CLASS}/${this.#hca()}/ports/${1 + this.#pick(3)}`;
    if (existsSync(dirname(this.#at(port))) && !existsSync(this.#at(port))) this.#makePort(port);
    return port;
  }

  #removePort(): string {
    const port = this.#port();
    if (port !== undefined) removeAsKernel(this.#at(port));
    return `${port}`;
  }

  #removeSet(): string {
    const path = `${this.#port()}/${this.#one(Object.keys(COUNTERS))}`;
    removeAsKernel(this.#at(path));
    return path;
  }

  /** Replaces the whole tree with a new one of equal content. */
  #copyTree(): string {
    const before = readlinkSync(this.#at('sys'));
    const after = `v${++this.#made}`;
    cpSync(this.#at(before), this.#at(after), { recursive: true, verbatimSymlinks: true });
    symlinkSync(after, this.#at('link'));
    renameSync(this.#at('link'), this.#at('sys'));
    if (this.#pick(2) === 0) rmSync(this.#at(before), { recursive: true });
    return after;
  }
}
