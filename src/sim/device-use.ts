import type { SimulatedHolder, SimulatedUse } from './family-simulation.ts';
import type { SimulatedPod } from './kubelet/pods.ts';

/** Adds up for how long each device worked for pods. Counters of the hardware depend on it, so it only grows. */
export class DeviceUse {
  readonly #activeMs = new Map<string, number>();
  #holders: ReadonlyMap<string, SimulatedHolder> = new Map();
  #atMs = 0;

  /** Moves to `elapsedMs`; until then the devices had the holders of the previous call. `idleIds`: held devices that do nothing. */
  at(elapsedMs: number, pods: readonly SimulatedPod[], idleIds: ReadonlySet<string>): Readonly<Record<string, SimulatedUse>> {
    const passedMs = Math.max(elapsedMs - this.#atMs, 0);
    this.#atMs = elapsedMs;
    for (const [id, { isIdle }] of this.#holders) {
      if (!isIdle) this.#activeMs.set(id, (this.#activeMs.get(id) ?? 0) + passedMs);
    }
    this.#holders = holdersOf(pods, idleIds);
    const ids = [...new Set([...this.#activeMs.keys(), ...this.#holders.keys()])];
    return Object.fromEntries(ids.map((id) => [id, useOf(this.#activeMs.get(id) ?? 0, this.#holders.get(id))]));
  }
}

function useOf(activeMs: number, holder: SimulatedHolder | undefined): SimulatedUse {
  return holder === undefined ? { activeMs } : { activeMs, holder };
}

function holdersOf(pods: readonly SimulatedPod[], idleIds: ReadonlySet<string>): ReadonlyMap<string, SimulatedHolder> {
  return new Map(
    pods.flatMap(({ uid, containers }) =>
      containers.flatMap(({ name, devices = [] }) =>
        devices.map(({ id }) => [id, { podUid: uid, program: name, isIdle: idleIds.has(id) }] as const),
      ),
    ),
  );
}
