import type { ReadGuard } from '../../../host/fs/read-guard.ts';

/** Notes which call of one GPU is under way, so that one that never comes back has a name. */
export class CallNotes {
  readonly guard: ReadGuard | undefined;
  /** Of the GPU. */
  readonly place: string;
  constructor(guard: ReadGuard | undefined, place: string) {
    this.guard = guard;
    this.place = place;
  }

  /** `name`: of the call, or of the first of several. */
  during<T>(name: string, call: () => T): T {
    this.guard?.enter(`${this.place}/${name}`, 'call');
    const result = call();
    this.guard?.leave();
    return result;
  }
}
