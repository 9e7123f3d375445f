import type { StepRecord } from '../../../host/fs/step-record.ts';

/** Records which call of one GPU is running, so that a call that hangs can be identified. */
export class CallNotes {
  readonly guard: StepRecord | undefined;
  /** Path of the GPU in the guard. */
  readonly place: string;
  constructor(guard: StepRecord | undefined, place: string) {
    this.guard = guard;
    this.place = place;
  }

  /** `name` is the name of the call, or of the first of several calls. */
  during<T>(name: string, call: () => T): T {
    this.guard?.enter(`${this.place}/${name}`, 'call');
    const result = call();
    this.guard?.leave();
    return result;
  }
}
