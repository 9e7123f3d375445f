import type { Observation, ObservedCall, ObservedCommand, ObservedRequest } from '../model/observation.ts';
import type { Frame, FrameCall, FrameRequest } from './frame.ts';
import type { Place } from './places.ts';
import { Places } from './places.ts';
import { TreeLog } from './tree-log.ts';

/** Largest output of a command in a capture. */
const MOST_OUTPUT_BYTES = 4 * 2 ** 20;
/** Most records of the kernel log in a frame: the newest ones. */
const MOST_RECORDS = 20_000;

/** Turns what was read into frames. Each frame has only what changed since the one before. */
export class CaptureLog {
  readonly #tree: TreeLog;
  readonly #commands = new Changes<Omit<ObservedCommand, 'kind'>>();
  readonly #library = new Changes<FrameCall>();
  readonly #requests = new Changes<FrameRequest>();
  readonly #kubelets: string[] = [];
  #kernelLog: string[] = [];
  #events = 0;

  constructor(places: readonly Place[]) {
    this.#tree = new TreeLog(new Places(places));
  }

  readonly take = (observation: Observation): void => {
    switch (observation.kind) {
      case 'command':
        this.#command(observation);
        break;
      case 'library':
        this.#call(observation);
        break;
      case 'request':
        this.#request(observation);
        break;
      case 'kernel-log':
        this.#kernelLog.push(observation.text);
        // The file of the log has its content in the records; only its errors are kept like those of other files.
        this.#tree.take({ kind: 'file', path: observation.path, bytes: new Uint8Array() });
        break;
      default:
        this.#tree.take(observation);
    }
  };

  /** Ends a frame. */
  cut(times: Pick<Frame, 'atMs' | 'wallMs' | 'page'>): Frame {
    const kernelLog = this.#kernelLog.slice(-MOST_RECORDS);
    this.#kernelLog = [];
    return {
      ...times,
      ...this.#tree.cut(),
      kernelLog,
      commands: this.#commands.cut(),
      library: this.#library.cut(),
      requests: this.#requests.cut(),
    };
  }

  #command({ kind: _, ...command }: ObservedCommand): void {
    const isTooLarge = command.stdout.length + command.stderr.length > MOST_OUTPUT_BYTES;
    const kept = isTooLarge ? { ...command, stdout: '', stderr: '', failure: 'too-large' } : command;
    this.#commands.take(JSON.stringify([command.program, command.args]), kept);
  }

  #call({ kind: _, memory, isEvent, ...call }: ObservedCall): void {
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
    const kept = { ...call, memory: memory.map(({ at, before, after }) => ({ at, before: text(before), after: text(after) })) };
    if (isEvent === true) {
      this.#library.take(`event ${this.#events}`, { ...kept, event: this.#events });
      this.#events += 1;
      return;
    }
    this.#library.take(JSON.stringify([call.symbol, call.types, call.values, kept.memory.map(({ before }) => before)]), kept);
  }

  #request({ method, identity, answer, error }: ObservedRequest): void {
    if (!this.#kubelets.includes(identity)) this.#kubelets.push(identity);
    this.#requests.take(method, {
      method,
      kubelet: this.#kubelets.lastIndexOf(identity),
      ...(answer === undefined ? {} : { answer: Buffer.from(answer).toString('base64') }),
      ...(error === undefined ? {} : { error: { code: error.code, details: error.details, ...(error.errno && { errno: error.errno }) } }),
    });
  }
}

/** The latest value of each key, and which of them changed. */
class Changes<T> {
  readonly #latest = new Map<string, string>();
  readonly #changed = new Map<string, T>();

  take(key: string, value: T): void {
    const text = JSON.stringify(value);
    if (this.#latest.get(key) === text) return;
    this.#latest.set(key, text);
    this.#changed.delete(key);
    this.#changed.set(key, value);
  }

  cut(): readonly T[] {
    const changed = [...this.#changed.values()];
    this.#changed.clear();
    return changed;
  }
}
