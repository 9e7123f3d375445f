import type { Reading } from '../../src/model/metric.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { device } from '../support/snapshots.ts';
import { snapshot, state } from './sample.ts';

/** Devices that come, go and change places, with readings that do so too. */
export function randomSnapshot(pick: (below: number) => number): Snapshot {
  const value = (): number | bigint => [0, pick(3), pick(1_000) / 8, BigInt(pick(99)) << 60n, Number.NaN, -1][pick(6)] as number | bigint;
  const labels = () => [undefined, { kind: `k${pick(3)}` }, { kind: 'é"\n' }, { colour: 'red' }, { sensor: `s${pick(2)}` }][pick(5)];
  const readings = (): readonly Reading[] =>
    Array.from({ length: pick(6) }, () => {
      const metric = ['device_temperature_celsius', 'device_errors_total', 'device_toy_crossings_total', 'device_none'][pick(4)] as string;
      const chosen = labels();
      return { metric, value: value(), ...(chosen && { labels: chosen }) };
    });
  const devices = Array.from({ length: pick(5) }, () => state(device({ id: `toy-${pick(4)}` }), {}, readings()));
  const containerReadings = snapshot.containerReadings.filter(() => pick(3) > 0);
  return { ...snapshot, devices, containerReadings };
}
