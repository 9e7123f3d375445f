import type { ReadGuard } from '../../../host/read-guard.ts';
import type { CallNotes } from './call-notes.ts';
import { CHANGE, NOT_ASKED, type Seen, unseen } from './changes.ts';
import { CODE, kindOf, printedFor } from './codes.ts';
import type { Values } from './getter.ts';
import type { Handle } from './library.ts';
import type { Question } from './questions.ts';

/** How a round of questions to one device ended. */
export interface Round {
  /** Codes of device faults that were met. */
  readonly faults: ReadonlySet<number>;
  /** The code at which the round was broken off, since it concerns the node. */
  readonly node?: number;
  /** The library does not know the device (any more). */
  readonly isUnknown?: true;
}

const SOUND: Round = { faults: new Set() };

/**
 * One device as it is asked: what it does not support is asked once, which holds as long as its handle and its instances. Before each
 * call the guard notes it, so that a call that never comes back has a name.
 */
export class Respondent {
  readonly values: Values;
  readonly #handle: Handle;
  readonly #place: string;
  readonly #guard: ReadGuard | undefined;
  readonly #notes: (number | undefined)[] = [];
  readonly #unsupported: boolean[] = [];
  readonly #seen: (Seen | undefined)[] = [];
  #change: number = CHANGE.none;

  constructor(handle: Handle, values: Values, { place, guard }: CallNotes) {
    this.#handle = handle;
    this.values = values;
    this.#place = place;
    this.#guard = guard;
  }

  /** What answers changed since the last call of this. */
  takeChange(): number {
    const change = this.#change;
    this.#change = CHANGE.none;
    return change;
  }

  /** Tells everything again at the next round: the values were overwritten. */
  forget(): void {
    this.#seen.length = 0;
    this.#change = CHANGE.other;
  }

  forgetUnsupported(): void {
    this.#unsupported.length = 0;
  }

  /** A value that is refused is told as `nvidia-smi` prints it. A lost GPU is not asked further: each of its calls may block. */
  ask(questions: readonly Question[]): Round {
    let faults: Set<number> | undefined;
    let isUnknown = false;
    for (const question of questions) {
      if (this.#unsupported[question.index] === true) continue;
      const code = this.#call(question);
      if (code === CODE.success || code === NOT_ASKED) continue;
      const kind = kindOf(code);
      if (kind === 'node') {
        this.#guard?.leaveNamed();
        return { faults: faults ?? SOUND.faults, node: code };
      }
      if (code === CODE.notSupported || code === CODE.functionNotFound) this.#unsupported[question.index] = true;
      isUnknown ||= code === CODE.invalidArgument || code === CODE.notFound;
      if (kind !== 'device') continue;
      faults ??= new Set();
      faults.add(code);
      if (code === CODE.gpuIsLost) break;
    }
    this.#guard?.leaveNamed();
    if (faults === undefined && !isUnknown) return SOUND;
    return { faults: faults ?? SOUND.faults, ...(isUnknown ? { isUnknown } : {}) };
  }

  /** The note of one call is replaced by that of the next: what is done between them does not hang. */
  #call(question: Question): number {
    if (this.#guard !== undefined) this.#note(this.#guard, question);
    const seen = this.#seen[question.index] ?? this.#firstSeen(question);
    seen.change = CHANGE.none;
    const code = question.read(this.#handle, this.values, seen);
    // Fields say for each entry how it ended, so a plan has told already.
    if (code !== CODE.success && code !== seen.code && question.name !== 'nvmlDeviceGetFieldValues') {
      withhold(question.paths, this.values, code === NOT_ASKED ? undefined : printedFor(code));
      seen.change = CHANGE.other;
    }
    seen.code = code;
    this.#change |= seen.change;
    return code;
  }

  #note(guard: ReadGuard, { index, name }: Question): void {
    const note = this.#notes[index] ?? guard.name(`${this.#place}/${name}`);
    this.#notes[index] = note;
    if (note !== undefined) guard.enterNamed(note);
  }

  #firstSeen({ index, words }: Question): Seen {
    const seen = unseen(words);
    this.#seen[index] = seen;
    return seen;
  }
}

export function withhold(paths: readonly string[], values: Values, word?: string): void {
  for (const path of paths) values[path] = word;
}
