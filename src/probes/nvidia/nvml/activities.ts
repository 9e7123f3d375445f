import type { Reading } from '../../../model/metric.ts';
import { Activity, type GpmCalls, hasGpm } from './gpm.ts';
import type { Handle } from './library.ts';
import type { Values } from './sheet.ts';

/** What identifies a MIG instance: ids are given anew after the instance is gone. */
interface Instance {
  readonly values: Values;
  readonly name?: { readonly uuid: string };
}

/** The activity of a GPU and of its GPU instances, where the board tells it. */
export class Activities {
  readonly #calls: GpmCalls | undefined;
  readonly #gpu: Handle;
  #whole: Activity | undefined;
  /** One of them has one sample. */
  #isWaiting = false;
  readonly #byKey = new Map<string, Activity>();
  /** Those that {@link #byKey} is of. */
  #followed: readonly Instance[] = [];
  #byInstance: ReadonlyMap<Instance, Activity> = new Map();

  /** Without calls nothing is told. */
  constructor(calls: GpmCalls | undefined, gpu: Handle) {
    this.#gpu = gpu;
    this.#calls = calls !== undefined && hasGpm(calls, gpu) ? calls : undefined;
    if (this.#calls !== undefined) this.#whole = new Activity(this.#calls, gpu);
  }

  /** `isPaced`: by the pace; what waits for its second sample is read before that. */
  isDue(isPaced: boolean): boolean {
    return this.#calls !== undefined && (isPaced || this.#isWaiting);
  }

  /** `instances`: the same list as long as none came or went. */
  refresh(nowMs: number, isBusyTold: boolean, instances: readonly Instance[]): void {
    if (this.#calls === undefined) return;
    if (instances !== this.#followed) this.#follow(this.#calls, instances);
    this.#whole?.read(nowMs, isBusyTold);
    this.#isWaiting = this.#whole?.isWaiting === true;
    for (const activity of this.#byKey.values()) {
      activity.read(nowMs, false);
      this.#isWaiting ||= activity.isWaiting;
    }
  }

  /** The GPU was split, or is no longer. */
  reconsider(): void {
    this.#whole?.reconsider();
  }

  whole(): readonly Reading[] {
    return this.#whole?.readings ?? NOTHING;
  }

  of(instance: Instance): readonly Reading[] {
    return this.#byInstance.get(instance)?.readings ?? NOTHING;
  }

  /** Buffers do not outlive the library's client. */
  free(): void {
    this.#whole?.free();
    for (const activity of this.#byKey.values()) activity.free();
    this.#byKey.clear();
    this.#byInstance = new Map();
    this.#followed = [];
  }

  /** Compute instances that share a GPU instance share its figures, which are nobody's own. */
  #follow(calls: GpmCalls, instances: readonly Instance[]): void {
    const counts = new Map<unknown, number>();
    for (const { values } of instances) counts.set(values.gpu_instance_id, (counts.get(values.gpu_instance_id) ?? 0) + 1);
    const alone = instances.filter(({ values }) => counts.get(values.gpu_instance_id) === 1);
    const keys = new Set(alone.map(keyOf));
    for (const [key, activity] of this.#byKey) {
      if (keys.has(key)) continue;
      activity.free();
      this.#byKey.delete(key);
    }
    this.#byInstance = new Map(alone.map((instance) => [instance, this.#activityOf(calls, instance)]));
    this.#followed = instances;
  }

  #activityOf(calls: GpmCalls, instance: Instance): Activity {
    const key = keyOf(instance);
    const activity = this.#byKey.get(key) ?? new Activity(calls, this.#gpu, Number(instance.values.gpu_instance_id));
    this.#byKey.set(key, activity);
    return activity;
  }
}

const NOTHING: readonly Reading[] = [];
const keyOf = ({ values, name }: Instance): string =>
  `${String(values.gpu_instance_id)} ${String(values.compute_instance_id)} ${name?.uuid ?? ''}`;
