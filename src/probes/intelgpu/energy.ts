import type { Reading } from '../../model/metric.ts';
import { metrics } from './metrics.ts';

/** Sensors of the whole GPU, the most complete first. */
const WHOLE: readonly string[] = ['card', 'package'];

/** Shortest time between two reads that gives a power. The driver refreshes its counters once in some milliseconds. */
const SHORTEST_MS = 500;

/** Turns counters of energy into readings of energy and of mean power. */
export class EnergyMeter {
  #before: { readonly energies: ReadonlyMap<string, bigint>; readonly atMs: number } | undefined;
  /** Chosen once, because the counter must not jump from one sensor to another. */
  #whole: string | undefined;

  /** The card slept: energy of that time is not power of now. */
  rest(): void {
    this.#before = undefined;
  }

  readings(energies: ReadonlyMap<string, bigint>, nowMs: number): readonly Reading[] {
    this.#whole ??= WHOLE.find((sensor) => energies.has(sensor));
    const whole = this.#whole === undefined ? undefined : energies.get(this.#whole);
    const before = this.#before;
    if (before === undefined || nowMs - before.atMs >= SHORTEST_MS) this.#before = { energies, atMs: nowMs };
    return [
      ...(whole === undefined ? [] : [{ metric: metrics.energy.name, value: Number(whole) / 1e6 }]),
      ...[...energies].flatMap(([sensor, now]): Reading[] => {
        const start = before?.energies.get(sensor);
        // An awake card always uses power, so a counter that stands still tells nothing.
        if (before === undefined || start === undefined || now <= start || nowMs - before.atMs < SHORTEST_MS) return [];
        return [{ metric: metrics.power.name, labels: { sensor }, value: Number(now - start) / 1e3 / (nowMs - before.atMs) }];
      }),
    ];
  }
}
