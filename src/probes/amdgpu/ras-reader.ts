import type { Problem } from '../../model/collection.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { isDue, type Pace } from '../kit/pace.ts';
import { plainText } from '../kit/text.ts';
import type { AmdgpuOptions } from './options.ts';
import {
  BAD_PAGES_LIMIT,
  type BadPages,
  type BlockErrors,
  blockOf,
  parseAcaCount,
  parseBadPages,
  parseErrorCount,
  parseEventState,
  type RasEvents,
} from './ras.ts';

/** Errors of one block. `isUnknown`: the file exists and could not be read. */
export interface BlockState {
  readonly block: string;
  readonly errors?: BlockErrors;
  readonly isUnknown: boolean;
}

/** Error handling of one card. A part is absent when the card does not have it, and `'unknown'` when it could not be read. */
export interface RasSample {
  /** The card shows no directory of error handling. */
  readonly isAbsent?: true;
  /** Problems of reads whose results are kept. */
  readonly problems: readonly Problem[];
  readonly events?: RasEvents | 'unknown';
  readonly blocks: readonly BlockState[];
  /** Monotonic clock of their read, when an earlier collection made it. */
  readonly blocksMs?: number | undefined;
  readonly badPages?: BadPages | 'unknown';
  readonly badPagesMs?: number | undefined;
}

interface Kept<T> {
  readonly value: T;
  readonly atMs: number;
}

const keptMs = (kept: Kept<unknown> | undefined, { nowMs }: Pace): number | undefined => (kept?.atMs === nowMs ? undefined : kept?.atMs);

/**
 * Reads the error handling of one card. `event_state` costs nothing and is read each time. A read of the error counts makes the driver
 * query the hardware, and the list of bad pages can be long: both are read rarely. New events make the counts due.
 */
export class RasReader {
  readonly #options: AmdgpuOptions;
  #eventsText: string | undefined;
  #blocks: (Kept<readonly BlockState[]> & { readonly problems: readonly Problem[] }) | undefined;
  /** Blocks that told a count before. When such a block tells none, its errors are unknown. */
  readonly #counted = new Set<string>();
  #badPages: Kept<BadPages | 'unknown' | undefined> | undefined;

  constructor(options: AmdgpuOptions) {
    this.#options = options;
  }

  read(files: DeviceFiles, pace: Pace): RasSample {
    const state = files.live('ras/event_state', parseEventState);
    const text = JSON.stringify(state, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    const isNew = text !== this.#eventsText;
    this.#eventsText = text;
    const events = state.value ?? (state.isUnknown ? 'unknown' : undefined);
    const blocks = this.#readBlocks(files, pace, isNew);
    const badPages = this.#readBadPages(files, pace, isNew);
    return {
      problems: this.#blocks?.problems ?? [],
      ...(events !== undefined && { events }),
      blocks,
      blocksMs: keptMs(this.#blocks, pace),
      ...(badPages !== undefined && { badPages, badPagesMs: keptMs(this.#badPages, pace) }),
    };
  }

  #readBlocks(files: DeviceFiles, pace: Pace, isNew: boolean): readonly BlockState[] {
    if (this.#blocks === undefined || isNew || isDue(this.#blocks.atMs, this.#options['ras-interval'], pace)) {
      const apart = files.apart();
      const value = apart
        .names('ras')
        .flatMap((name) => {
          const known = blockOf(name);
          return known === undefined ? [] : [{ name, ...known }];
        })
        .map(({ name, block, isAca }): BlockState => {
          const { value, isUnknown } = apart.once(`ras/${name}`, (content) => countOf(content, isAca));
          if (value === undefined || value === 'not ready') return { block, isUnknown: isUnknown || this.#counted.has(block) };
          this.#counted.add(block);
          return { block, isUnknown: false, errors: value };
        });
      const listed = new Set(value.map(({ block }) => block));
      const vanished = [...this.#counted].filter((block) => !listed.has(block)).map((block): BlockState => ({ block, isUnknown: true }));
      if (apart.isHung) files.isHung = true;
      this.#blocks = { value: [...value, ...vanished], problems: apart.problems, atMs: pace.nowMs };
    }
    return this.#blocks.value;
  }

  #readBadPages(files: DeviceFiles, pace: Pace, isNew: boolean): BadPages | 'unknown' | undefined {
    if (this.#badPages === undefined || isNew || isDue(this.#badPages.atMs, this.#options['bad-pages-interval'], pace)) {
      const path = `${files.directory}/ras/gpu_vram_bad_pages`;
      const bytes = files.sys.bytes(path, BAD_PAGES_LIMIT);
      const value = bytes === undefined ? (files.sys.exists(path) ? 'unknown' : undefined) : (parseBadPages(bytes) ?? 'unknown');
      this.#badPages = { value, atMs: pace.nowMs };
    }
    return this.#badPages.value;
  }
}

/** The driver prints a sentence while a block is off or not ready. That is neither a count nor a failure. */
function countOf(content: string, isAca: boolean): BlockErrors | 'not ready' | undefined {
  const errors = isAca ? parseAcaCount(content) : parseErrorCount(content);
  return errors ?? (/^[A-Za-z][A-Za-z ,.']+$/.test(plainText(content)) ? 'not ready' : undefined);
}
