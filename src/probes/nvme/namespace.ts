import type { Tree } from '../../host/fs/tree.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { firstLine, parseCount, parseFlag, plainText } from '../kit/text.ts';
import type { NvmeOptions } from './declaration.ts';
import type { NamespacePlace } from './discover.ts';

/** Bytes of a sector in `stat` and `size`, whatever the drive's own block size is. Linux Documentation/block/stat.rst. */
export const SECTOR_BYTES = 512n;

/** Operations of one kind since the disk appeared. */
export interface OperationCounts {
  readonly completed: bigint;
  /** 512-byte sectors; a flush has none. */
  readonly sectors?: bigint;
  readonly milliseconds: bigint;
}

/** Content of `/sys/block/<disk>/stat`. Kernels before 4.18 report no discards, and kernels before 5.5 no flushes. */
export interface DiskStat {
  readonly read: OperationCounts;
  readonly write: OperationCounts;
  readonly discard?: OperationCounts;
  readonly flush?: OperationCounts;
  /** Operations that the disk has now. */
  readonly inFlight: bigint;
  /** Time with at least one operation. */
  readonly busyMilliseconds: bigint;
  /** Sum of the times of all operations. */
  readonly queuedMilliseconds: bigint;
}

/** Numbers in the file: at least 11. */
const FEWEST = 11;
const [WITH_DISCARDS, WITH_FLUSHES] = [15, 17];

/** Parses the numbers of the file; undefined for other text. The fields are those of Linux Documentation/block/stat.rst. */
export function parseDiskStat(text: string): DiskStat | undefined {
  const words = plainText(text).split(/\s+/);
  if (words.length < FEWEST || !words.every((word) => /^\d{1,20}$/.test(word))) return undefined;
  const at = (index: number): bigint => BigInt(words[index] as string);
  const operations = (first: number): OperationCounts => ({ completed: at(first), sectors: at(first + 2), milliseconds: at(first + 3) });
  return {
    read: operations(0),
    write: operations(4),
    inFlight: at(8),
    busyMilliseconds: at(9),
    queuedMilliseconds: at(10),
    ...(words.length >= WITH_DISCARDS && { discard: operations(11) }),
    ...(words.length >= WITH_FLUSHES && { flush: { completed: at(15), milliseconds: at(16) } }),
  };
}

/** Linux drivers/nvme/host/multipath.c, `ana_state`. */
const ANA_STATES = ['optimized', 'non-optimized', 'inaccessible', 'persistent-loss', 'change'] as const;
type AnaState = (typeof ANA_STATES)[number];

/** Facts of a namespace that rarely change. */
export interface NamespaceFacts {
  /** Number of the namespace in its subsystem. */
  readonly number?: string;
  /** `eui.…` or `uuid.…`, or the kernel's text of vendor, serial number and model. */
  readonly wwid?: string;
  /** Lower case, with dashes. */
  readonly nguid?: string;
  readonly uuid?: string;
  /** 16 hexadecimal digits. */
  readonly eui?: string;
  /** 512-byte sectors. */
  readonly sectors?: number | bigint;
}

export interface NamespaceSample {
  readonly isHung: boolean;
  readonly stat?: DiskStat;
  readonly isReadOnly?: boolean;
  /** State of each path, in the order of the place's paths; `unknown` when it could not be read. Empty without multipath. */
  readonly anaStates: readonly (AnaState | 'unreported' | 'unknown')[];
}

/** Reads one namespace. All of its files tell what the kernel has in memory; `nuse` is never opened, because it sends a command. */
export class Namespace {
  readonly place: NamespacePlace;
  facts: NamespaceFacts = {};
  /** False while the files that name it could not be read: it is unknown which namespace it is. */
  isNamed = false;
  /** Problems of the last read, without the name of the device. */
  problems: readonly Problem[] = [];
  readonly #sys: Tree;
  readonly #options: NvmeOptions;
  #factsAtMs: number | undefined;

  constructor(sys: Tree, options: NvmeOptions, place: NamespacePlace) {
    this.#sys = sys;
    this.#options = options;
    this.place = place;
  }

  read(pace: Pace): NamespaceSample {
    const files = new DeviceFiles(this.#sys, this.place.directory);
    this.#readFacts(files, pace);
    const stat = this.#readStat(files);
    const isReadOnly = files.live('ro', parseFlag).value;
    const anaStates = this.place.paths.flatMap(({ directory }) => (directory === undefined ? [] : [this.#anaState(directory)]));
    this.problems = files.problems;
    return {
      isHung: files.isHung,
      anaStates,
      ...(stat !== undefined && { stat }),
      ...(isReadOnly !== undefined && { isReadOnly }),
    };
  }

  close(): void {
    this.#sys.forget(this.place.directory);
    for (const { directory } of this.place.paths) if (directory !== undefined) this.#sys.forget(directory);
  }

  /**
   * A disk whose `queue/iostats` is 0 counts nothing, and its `stat` stands still. Kernels before 6.3 never count on a disk with paths. The
   * only path then counts the same operations; of several paths each counts those that were repeated on another one, too.
   */
  #readStat(files: DeviceFiles): DiskStat | undefined {
    const counts = (disk: DeviceFiles): boolean => disk.live('queue/iostats', parseFlag).value !== false;
    if (counts(files)) return files.live('stat', parseDiskStat).value;
    const [path, another] = this.place.paths;
    if (path?.directory === undefined || another !== undefined) return undefined;
    const only = files.in(path.directory);
    return counts(only) ? only.live('stat', parseDiskStat).value : undefined;
  }

  /** Drives without asymmetric access have no such file: all their paths are equal. */
  #anaState(directory: string): AnaState | 'unreported' | 'unknown' {
    const { text, error } = this.#sys.reread(`${directory}/ana_state`);
    if (error !== undefined) return error === 'ENOENT' ? 'unreported' : 'unknown';
    const word = plainText(text);
    return ANA_STATES.find((state) => state === word) ?? 'unknown';
  }

  #readFacts(files: DeviceFiles, pace: Pace): void {
    if (!isDue(this.#factsAtMs, this.#options['facts-interval'], pace)) return;
    const [number, wwid] = [files.once('nsid', firstLine), files.once('wwid', firstLine)];
    if (number.isUnknown || wwid.isUnknown) return;
    this.isNamed = true;
    this.#factsAtMs = pace.nowMs;
    this.facts = defined({
      number: number.value,
      wwid: wwid.value?.toLowerCase(),
      nguid: idOf(files.text('nguid')),
      uuid: idOf(files.text('uuid')),
      eui: idOf(files.text('eui')?.replaceAll(' ', '')),
      sectors: files.value('size', parseCount),
    });
  }
}

/** An id of zeros is no id. */
function idOf(text: string | undefined): string | undefined {
  const id = text?.toLowerCase();
  return id === undefined || !/^[0-9a-f-]{16,36}$/.test(id) || /^[0-]+$/.test(id) ? undefined : id;
}
