import type { ReadGuard } from '../../../host/read-guard.ts';

/** Notes which call of one GPU is under way, so that one that never comes back has a name. */
export class CallNotes {
  readonly guard: ReadGuard | undefined;
  /** Of the GPU. */
  readonly place: string;
  readonly #numbers = new Map<string, number | undefined>();

  constructor(guard: ReadGuard | undefined, place: string) {
    this.guard = guard;
    this.place = place;
  }

  /** `name`: of the call, or of the first of several. */
  during<T>(name: string, call: () => T): T {
    if (this.guard === undefined) return call();
    const note = this.#number(this.guard, name);
    if (note !== undefined) this.guard.enterNamed(note);
    const result = call();
    this.guard.leaveNamed();
    return result;
  }

  #number(guard: ReadGuard, name: string): number | undefined {
    if (!this.#numbers.has(name)) this.#numbers.set(name, guard.name(`${this.place}/${name}`));
    return this.#numbers.get(name);
  }
}
