import type { Problem } from '../../model/collection.ts';
import { addValues, type Value } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { IntervalCache, type Pace } from '../kit/pace.ts';
import type { ReadingSet } from '../kit/reading-set.ts';
import { parseCount, plainText } from '../kit/text.ts';
import type { AmdgpuOptions } from './discover.ts';
import { metrics } from './metrics.ts';

/** Errors that one block of a card counted since the driver was loaded. A count that the file does not tell is absent. */
export type BlockErrors = Readonly<Partial<Record<(typeof KEYS)[keyof typeof KEYS], Value>>>;

/** Deferred errors are in data that nothing read so far. */
const KEYS = { ue: 'uncorrectable', ce: 'correctable', de: 'deferred' } as const;

/** Parses lines of a name and a count. A line of another form, or of a name without a key, is skipped. Undefined when no line is known. */
function countsIn<K extends string>(keys: Readonly<Record<string, K>>, text: string, form: RegExp) {
  const counts: Partial<Record<K, Value>> = {};
  let isKnown = false;
  for (const line of plainText(text).split('\n')) {
    const [, name = '', digits] = form.exec(line.trim()) ?? [];
    const [key, value] = [keys[name.toLowerCase()], parseCount(digits)];
    if (key === undefined || value === undefined) continue;
    counts[key] = value;
    isKnown = true;
  }
  return isKnown ? counts : undefined;
}

/** Parses `<block>_err_count` and `aca_<block>`: lines like `ue: 0`. A sentence means that the block is not ready, which gives undefined. */
export const parseErrorCount = (text: string): BlockErrors | undefined => countsIn(KEYS, text, /^(ue|ce|de)\s*:\s*(\d{1,20})$/);

/** Like {@link parseErrorCount} for `aca_<block>`. The first kernels print the uncorrectable count in the deferred line, too. */
export function parseAcaCount(text: string): BlockErrors | undefined {
  const errors = parseErrorCount(text);
  if (errors?.deferred === undefined || errors.deferred !== errors.uncorrectable || Number(errors.deferred) === 0) return errors;
  const { deferred: _, ...rest } = errors;
  return rest;
}

/** Files of the directory `ras` with the counts of a block. */
const COUNTED = /^(?:([a-z0-9_]{1,32})_err_count|aca_([a-z0-9_]{1,32}))$/;

/** Events of error handling since the driver was loaded, from `event_state`. */
export type RasEvents = Readonly<Partial<Record<(typeof EVENTS)[keyof typeof EVENTS], Value>>>;

const EVENTS = {
  'fatal error': 'fatal_error',
  'poison creation': 'poison_creation',
  'poison consumption': 'poison_consumption',
} as const;

/** Parses `event_state`: lines like `Fatal Error: count:0, last_seqno:0`. */
export const parseEventState = (text: string): RasEvents | undefined =>
  countsIn(EVENTS, text, /^([A-Za-z][A-Za-z ]{0,40}?)\s*:\s*count\s*:\s*(\d{1,20})\b/);

/** Pages of memory that the card no longer uses, or will no longer use. */
export interface BadPages {
  readonly retired: number;
  readonly pending: number;
  readonly failed: number;
  /** False when the list is longer than what was read, so that the numbers are the least possible ones. */
  readonly isWhole: boolean;
}

/** Largest part of the list that is read. It has about 2,300 lines. */
const BAD_PAGES_LIMIT = 65_536;

/** Parses `gpu_vram_bad_pages`: lines like `0x00000001 : 0x00001000 : R`. An empty file means no bad page. */
export function parseBadPages(bytes: Buffer): BadPages | undefined {
  const isWhole = bytes.length < BAD_PAGES_LIMIT;
  const lines = plainText(bytes.toString('latin1')).split('\n');
  if (!isWhole) lines.pop();
  const counts = { R: 0, P: 0, F: 0 };
  let isKnown = true;
  for (const line of lines) {
    if (line.trim() === '') continue;
    const flag = /^0x[0-9a-f]{1,16}\s*:\s*0x[0-9a-f]{1,16}\s*:\s*([RPF])$/i.exec(line.trim())?.[1];
    if (flag === undefined) isKnown = false;
    else counts[flag.toUpperCase() as keyof typeof counts] += 1;
  }
  const total = counts.R + counts.P + counts.F;
  if (!isKnown && total === 0) return undefined;
  return { retired: counts.R, pending: counts.P, failed: counts.F, isWhole: isWhole && isKnown };
}

/** Errors of one block. `isUnknown`: the file exists and could not be read. */
interface BlockState {
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

/**
 * Reads the error handling of one card. `event_state` costs nothing and is read each time. A read of the error counts makes the driver
 * query the hardware, and the list of bad pages can be long: both are read rarely. New events make the counts due.
 */
export class RasReader {
  readonly #options: AmdgpuOptions;
  #eventsText: string | undefined;
  readonly #blocks = new IntervalCache<{ readonly states: readonly BlockState[]; readonly problems: readonly Problem[] }>();
  /** Blocks that reported a count before. When such a block reports none, its errors are unknown. */
  readonly #counted = new Set<string>();
  readonly #badPages = new IntervalCache<BadPages | 'unknown' | undefined>();

  constructor(options: AmdgpuOptions) {
    this.#options = options;
  }

  read(files: DeviceFiles, pace: Pace): RasSample {
    const state = files.live('ras/event_state', parseEventState);
    const text = JSON.stringify(state, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    const isNew = text !== this.#eventsText;
    this.#eventsText = text;
    const events = state.value ?? (state.isUnknown ? 'unknown' : undefined);
    const isKept = (): boolean => !isNew;
    const blocks = this.#blocks.of(pace, this.#options['ras-interval'], () => this.#readBlocks(files), isKept);
    const badPages = this.#badPages.of(pace, this.#options['bad-pages-interval'], () => readBadPages(files), isKept);
    return {
      problems: blocks.problems,
      ...(events !== undefined && { events }),
      blocks: blocks.states,
      blocksMs: this.#blocks.readMs(pace),
      ...(badPages !== undefined && { badPages, badPagesMs: this.#badPages.readMs(pace) }),
    };
  }

  #readBlocks(files: DeviceFiles) {
    const apart = files.apart();
    const states = apart.names('ras').flatMap((name): BlockState[] => {
      const [, ofFile, ofAca] = COUNTED.exec(name) ?? [];
      const block = ofFile ?? ofAca;
      if (block === undefined) return [];
      const { value, isUnknown } = apart.once(`ras/${name}`, (content) => countOf(content, ofFile === undefined));
      if (value === undefined || value === 'not ready') return [{ block, isUnknown: isUnknown || this.#counted.has(block) }];
      this.#counted.add(block);
      return [{ block, isUnknown: false, errors: value }];
    });
    const listed = new Set(states.map(({ block }) => block));
    const vanished = [...this.#counted].filter((block) => !listed.has(block)).map((block): BlockState => ({ block, isUnknown: true }));
    if (apart.isHung) files.isHung = true;
    return { states: [...states, ...vanished], problems: apart.problems };
  }
}

function readBadPages(files: DeviceFiles): BadPages | 'unknown' | undefined {
  const path = `${files.directory}/ras/gpu_vram_bad_pages`;
  const bytes = files.sys.bytes(path, BAD_PAGES_LIMIT);
  if (bytes === undefined) return files.sys.exists(path) ? 'unknown' : undefined;
  return parseBadPages(bytes) ?? 'unknown';
}

/** The driver prints a sentence while a block is off or not ready. That is neither a count nor a failure. */
function countOf(content: string, isAca: boolean): BlockErrors | 'not ready' | undefined {
  const errors = isAca ? parseAcaCount(content) : parseErrorCount(content);
  return errors ?? (/^[A-Za-z][A-Za-z ,.']+$/.test(plainText(content)) ? 'not ready' : undefined);
}

export function addRas(readings: ReadingSet, { events, blocks, blocksMs, badPages, badPagesMs }: RasSample): void {
  if (events !== undefined && events !== 'unknown')
    for (const event of Object.values(EVENTS)) readings.add(metrics.rasEvents, events[event], { event });
  readings.readMs = blocksMs;
  for (const severity of Object.values(KEYS)) {
    for (const { block, errors } of blocks) readings.add(metrics.rasErrors, errors?.[severity], { block, severity });
    // A sum without one of its parts would fall, so it needs all blocks that can be read.
    const counts = blocks.flatMap(({ errors }) => errors?.[severity] ?? []);
    if (severity === 'deferred' || counts.length === 0 || blocks.some(({ isUnknown }) => isUnknown)) continue;
    readings.add(metrics.errors, counts.reduce(addValues), { kind: `ecc_${severity}` });
  }
  readings.readMs = badPagesMs;
  if (badPages !== undefined && badPages !== 'unknown' && badPages.isWhole)
    for (const state of ['retired', 'pending', 'failed'] as const) readings.add(metrics.badPages, badPages[state], { state });
  readings.readMs = undefined;
}
