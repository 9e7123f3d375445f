import type { ReadGuard } from '../../../host/fs/read-guard.ts';
import type { CallNotes } from './call-notes.ts';
import { CHANGE } from './changes.ts';
import { CODE, kindOf, printedFor } from './codes.ts';
import type { Question } from './getter.ts';
import { NOT_ASKED, type Sheet, type Values } from './sheet.ts';

/** How a round of questions to one device ended. */
export interface Round {
  /** The code at which it was broken off: it concerns the node, or the device is lost. */
  readonly ended?: number;
  /** The library does not know the device (any more). */
  readonly isUnknown?: true;
}

const SOUND: Round = {};
const UNKNOWN: Round = { isUnknown: true };
const NO_FAULTS: ReadonlySet<number> = new Set();

/**
 * One device as it is asked: what it does not support is asked once, which holds as long as its handle and its instances. Before each
 * call the guard notes it, so that a call that never comes back has a name.
 */
export class Respondent {
  readonly sheet: Sheet;
  /** Codes of device faults among the last answers to all questions. */
  faults = NO_FAULTS;
  readonly #place: string;
  readonly #guard: ReadGuard | undefined;

  constructor(sheet: Sheet, { place, guard }: CallNotes) {
    this.sheet = sheet;
    this.#place = place;
    this.#guard = guard;
  }

  /** What answers changed since the last call of this. */
  takeChange(): number {
    const { change } = this.sheet;
    this.sheet.change = CHANGE.none;
    return change;
  }

  /** Tells everything again at the next round: the values were overwritten. */
  forget(): void {
    const { sheet } = this;
    for (const [index, code] of sheet.codes.entries()) if (!isForGood(code)) sheet.codes[index] = NOT_ASKED;
    sheet.change = CHANGE.other;
    this.faults = NO_FAULTS;
  }

  forgetUnsupported(): void {
    const { codes } = this.sheet;
    for (const [index, code] of codes.entries()) if (isForGood(code)) codes[index] = NOT_ASKED;
  }

  /** A value that is refused is told as `nvidia-smi` prints it. A lost GPU is not asked further: each of its calls may block. */
  ask(questions: readonly Question[]): Round {
    let isUnknown = false;
    let ended: number | undefined;
    for (const question of questions) {
      const code = this.#call(question);
      if (code === CODE.success || code === NOT_ASKED) continue;
      isUnknown ||= code === CODE.invalidArgument || code === CODE.notFound;
      if (code !== CODE.gpuIsLost && kindOf(code) !== 'node') continue;
      ended = code;
      break;
    }
    this.#guard?.leave();
    if (ended !== undefined) return { ended };
    return isUnknown ? UNKNOWN : SOUND;
  }

  /** Whether asking again would change nothing: each was answered, or there is nothing to tell. */
  isAnswered(questions: readonly Question[]): boolean {
    return questions.every(({ index }) => {
      const kind = kindOf(this.sheet.codes[index] as number);
      return kind === 'ok' || kind === 'absent';
    });
  }

  #gatherFaults(): void {
    const faults = new Set<number>();
    for (const code of this.sheet.codes) if (kindOf(code) === 'device') faults.add(code);
    this.faults = faults.size > 0 ? faults : NO_FAULTS;
  }

  /** The note of one call is replaced by that of the next: what is done between them does not hang. */
  #call(question: Question): number {
    const { sheet } = this;
    const { index } = question;
    const before = sheet.codes[index] as number;
    if (isForGood(before)) return NOT_ASKED;
    this.#guard?.enter(`${this.#place}/${question.name}`, 'call');
    const isLeftOut = question.unless !== undefined && haveNumber(question.unless, sheet.values);
    const code = isLeftOut ? NOT_ASKED : question.read(sheet);
    if (code !== CODE.success && code !== before && !question.hasOwnCodes) {
      withhold(question.paths, sheet.values, code === NOT_ASKED ? undefined : printedFor(code));
      sheet.move(question.path, question.paths.length, CHANGE.other);
    }
    sheet.codes[index] = code;
    if (code !== before && (kindOf(code) === 'device' || kindOf(before) === 'device')) this.#gatherFaults();
    return code;
  }
}

const isForGood = (code: number): boolean => code === CODE.notSupported || code === CODE.functionNotFound;

function haveNumber(paths: readonly string[], values: Values): boolean {
  for (const path of paths) if (typeof values[path] === 'number') return true;
  return false;
}

function withhold(paths: readonly string[], values: Values, word?: string): void {
  for (const path of paths) values[path] = word;
}

/** Takes what was told back. */
export function withholdAll(questions: readonly Question[], values: Values): void {
  for (const { paths } of questions) withhold(paths, values);
}
