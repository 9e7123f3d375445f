import type { Reading } from '../../model/metric.ts';
import { pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import type { AwakeSample, CardFacts } from './card.ts';
import type { CardPlace } from './discover.ts';
import { metrics } from './metrics.ts';
import { profileReadings } from './sriov.ts';

/** Integrated GPUs of Intel are always at this place of the first bus. */
const INTEGRATED = /:00:02\.0$/;

/** Readings of a sleeping card: that it sleeps, and that its engines did nothing if it slept all the time. */
export function asleepReadings(isIdle: boolean, engines: readonly string[]): readonly Reading[] {
  return [{ metric: metrics.asleep.name, value: 1 }, ...(isIdle ? idleReadings(engines) : [])];
}

export const idleReadings = (engines: readonly string[]): readonly Reading[] =>
  utilizationReadings(Object.fromEntries(engines.map((engine) => [engine, 0])));

export const utilizationReadings = (shares: Readonly<Record<string, number>>): readonly Reading[] =>
  Object.entries(shares).map(([engine, value]) => ({ metric: metrics.utilization.name, labels: { engine }, value }));

/** Readings of an awake card, without those of its processes. */
export function cardReadings(place: CardPlace, sample: AwakeSample, facts: CardFacts): readonly Reading[] {
  const readings = new ReadingSet();
  const type = place.parent !== undefined ? 'vf' : INTEGRATED.test(place.address) ? 'integrated' : 'discrete';
  readings.add(metrics.asleep, 0);
  readings.add(metrics.info, 1, {
    type,
    fan_control_version: facts.fanControl ?? '',
    voltage_regulator_version: facts.voltageRegulator ?? '',
  });
  readings.add(metrics.functions, facts.functions);
  readings.add(metrics.functionsMax, facts.functionsMax);
  for (const { gt, actual, requested, most, limits, idleSeconds } of sample.gts) {
    const clock = { clock: gt.name };
    readings.add(metrics.gtInfo, 1, { gt: gt.name, tile: gt.tile === undefined ? '' : String(gt.tile), type: gt.type ?? '' });
    readings.add(metrics.clock, actual, clock);
    readings.add(metrics.requestedClock, requested, clock);
    readings.add(metrics.clockMax, most, clock);
    for (const limit of ['min', 'max'] as const) readings.add(metrics.clockLimit, limits[limit], { ...clock, limit });
    readings.add(metrics.gtIdle, idleSeconds, { gt: gt.name });
  }
  readings.addAll(sample.monitor.readings);
  readings.addAll(sample.power);
  for (const [reason, gts] of sample.throttle?.reasons ?? []) {
    // A reason that holds nowhere is only known to be 0 when every GT was read.
    if (gts.length > 0 || sample.throttle?.unknown.length === 0) readings.add(metrics.throttled, gts.length > 0 ? 1 : 0, { reason });
  }
  if (sample.profile !== undefined) readings.addAll(profileReadings(sample.profile));
  readings.add(metrics.memoryTotal, facts.memoryTotal);
  if (sample.pcie !== undefined) readings.addAll(pcieReadings(sample.pcie));
  return readings.list();
}
