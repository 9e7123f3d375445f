import type { Tree } from '../../host/fs/tree.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Reading } from '../../model/metric.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { addRows } from '../kit/file-rows.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { recordReadings } from '../kit/record-rows.ts';
import { firstLine, parseFlag, plainText } from '../kit/text.ts';
import { type ControllerState, type PathCounts, pathFindings, readOnly, stateFindings } from './conditions.ts';
import type { NvmeOptions } from './declaration.ts';
import type { NamespacePlace } from './discover.ts';
import { DISK_FACTS, metrics, STAT_ROWS } from './metrics.ts';

/** The numbers of `stat`, at least 11; undefined for other text. Linux Documentation/block/stat.rst. */
export function parseDiskStat(text: string): readonly string[] | undefined {
  const words = plainText(text).split(/\s+/);
  return words.length >= 11 && words.every((word) => /^\d{1,20}$/.test(word)) ? words : undefined;
}

/** Linux drivers/nvme/host/multipath.c, `ana_state`. Drives without asymmetric access have no such file: all their paths are equal. */
const ANA_STATES = ['optimized', 'non-optimized', 'unreported', 'inaccessible', 'persistent-loss', 'change'] as const;
type AnaState = (typeof ANA_STATES)[number];
const USABLE: readonly (AnaState | undefined)[] = ['optimized', 'non-optimized', 'unreported'];

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
  #steady: readonly Reading[] = [];

  constructor(sys: Tree, options: NvmeOptions, place: NamespacePlace) {
    this.#sys = sys;
    this.#options = options;
    this.place = place;
  }

  /** `states`: of the controllers of its paths. */
  read(pace: Pace, states: readonly ControllerState[]) {
    const files = new DeviceFiles(this.#sys, this.place.directory);
    this.#readFacts(files, pace);
    const readings = new ReadingSet();
    const stat = this.#readStat(files) ?? [];
    const isReadOnly = files.live('ro', parseFlag).value;
    if (isReadOnly !== undefined) readings.add(metrics.readOnly, Number(isReadOnly));
    const paths = this.#countPaths(states);
    readings.add(metrics.paths, paths?.all);
    readings.add(metrics.usablePaths, paths?.usable);
    this.problems = files.problems;
    const counted = recordReadings(STAT_ROWS, (at) => (at > stat.length ? undefined : BigInt(stat[at - 1] as string)));
    const findings = [...stateFindings(states), ...(paths === undefined ? [] : pathFindings(states, paths)), readOnly(isReadOnly)];
    return { isHung: files.isHung, readings: [...this.#steady, ...readings.list(), ...counted], findings };
  }

  close(): void {
    this.#sys.forget(this.place.directory);
    for (const { directory } of this.place.paths) if (directory !== undefined) this.#sys.forget(directory);
  }

  /**
   * A disk whose `queue/iostats` is 0 counts nothing, and its `stat` stands still. Kernels before 6.3 never count on a disk with paths. The
   * only path then counts the same operations; of several paths each counts those that were repeated on another one, too.
   */
  #readStat(files: DeviceFiles): readonly string[] | undefined {
    const counts = (disk: DeviceFiles): boolean => disk.live('queue/iostats', parseFlag).value !== false;
    if (counts(files)) return files.live('stat', parseDiskStat).value;
    const [path, another] = this.place.paths;
    if (path?.directory === undefined || another !== undefined) return undefined;
    const only = files.in(path.directory);
    return counts(only) ? only.live('stat', parseDiskStat).value : undefined;
  }

  /** A path can be used when its controller is live and the drive gives access through it. */
  #countPaths(states: readonly ControllerState[]): PathCounts | undefined {
    const access = this.place.paths.flatMap(({ directory }) => (directory === undefined ? [] : [this.#anaState(directory)]));
    if (access.length === 0) return undefined;
    const all = states.length;
    if (states.includes('unknown') || access.includes(undefined)) return { all };
    return { all, usable: states.filter((state, n) => state === 'live' && USABLE.includes(access[n])).length };
  }

  #anaState(directory: string): AnaState | undefined {
    const { text, error } = this.#sys.reread(`${directory}/ana_state`);
    if (error !== undefined) return error === 'ENOENT' ? 'unreported' : undefined;
    return ANA_STATES.find((state) => state === plainText(text));
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
    });
    const steady = new ReadingSet();
    addRows(steady, files, DISK_FACTS, 'once');
    this.#steady = steady.list();
  }
}

/** An id of zeros is no id. */
function idOf(text: string | undefined): string | undefined {
  const id = text?.toLowerCase();
  return id === undefined || !/^[0-9a-f-]{16,36}$/.test(id) || /^[0-]+$/.test(id) ? undefined : id;
}
