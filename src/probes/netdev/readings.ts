import type { Reading } from '../../model/metric.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { plainValue } from '../kit/text.ts';
import type { Counters, Settings } from './counters.ts';
import type { NetworkFunction } from './discover.ts';
import { BYTES_PER_MEGABIT, COUNTERS, type CounterRow, errors, LINK_STATES, metrics, PORT_COUNTERS, SETTINGS } from './metrics.ts';
import type { PortSample } from './port.ts';

/** Readings of a physical function, or of a function without SR-IOV. */
export function physicalReadings(fn: NetworkFunction, ports: readonly PortSample[]): readonly Reading[] {
  const readings = new ReadingSet();
  addInfo(readings, fn, '');
  if (fn.kind === 'pf') {
    readings.add(metrics.functions, fn.virtualFunctions);
    readings.add(metrics.functionsMax, fn.maxVirtualFunctions);
  }
  for (const sample of ports) {
    const { port, isUp, mtu, transmitTimeouts } = sample;
    addLink(readings, sample, isUp);
    readings.add(metrics.mtu, mtu, { port });
    readings.add(metrics.transmitTimeouts, transmitTimeouts, { port });
  }
  return [...readings.list(), ...counterReadings(PORT_COUNTERS, ports)];
}

/** What is known of one virtual function. */
export interface VirtualSample {
  readonly fn: NetworkFunction;
  readonly settings: Settings;
  readonly counters?: Counters;
  /** First port of the physical function. */
  readonly port?: PortSample;
  readonly representor?: string;
}

export function virtualReadings({ fn, settings, counters, port, representor = '' }: VirtualSample): readonly Reading[] {
  const readings = new ReadingSet();
  addInfo(readings, fn, representor);
  const isDisabled = settings.linkState === LINK_STATES.indexOf('disable');
  if (port !== undefined) addLink(readings, port, isDisabled ? false : port.isUp);
  const counted = counters === undefined ? [] : counterReadings(COUNTERS, [{ port: port?.port ?? '1', counters }]);
  addSettings(readings, settings);
  return [...readings.list(), ...counted];
}

function addInfo(readings: ReadingSet, { interfaces, rdmaDevices }: NetworkFunction, representor: string): void {
  readings.add(metrics.info, 1, { interface: interfaces[0] ?? '', representor, rdma_device: rdmaDevices[0] ?? '' });
}

function addLink(readings: ReadingSet, { port, megabits }: PortSample, isUp: boolean | undefined): void {
  readings.add(metrics.linkUp, isUp === undefined ? undefined : Number(isUp), { port });
  readings.add(metrics.linkSpeed, megabits === undefined ? undefined : megabits * BYTES_PER_MEGABIT, { port });
}

/** Counters of one port. */
interface PortCounters {
  readonly port: string;
  readonly counters: Counters;
}

function counterReadings(rows: readonly CounterRow[], ports: readonly PortCounters[]): readonly Reading[] {
  const readings: Reading[] = [];
  for (const { name, metric, labels } of rows) {
    // Errors have no port: a function with several ports gives their sum, and only when all of them are known.
    let sum: bigint | undefined = 0n;
    for (const { port, counters } of ports) {
      const { [name]: count } = counters;
      sum = sum === undefined || count === undefined ? undefined : sum + count;
      if (metric === errors || count === undefined) continue;
      readings.push({ metric: metric.name, labels: labels === undefined ? { port } : { port, ...labels }, value: plainValue(count) });
    }
    if (metric === errors && labels !== undefined && sum !== undefined && ports.length > 0)
      readings.push({ metric: metric.name, labels, value: plainValue(sum) });
  }
  return readings;
}

function addSettings(readings: ReadingSet, settings: Settings): void {
  for (const { name, metric, words = [], times } of SETTINGS) {
    const { [name]: number } = settings;
    // Of a setting with a factor, 0 is no limit.
    if (number === undefined || (number === 0 && times !== undefined)) continue;
    if (metric.labels.length > 0) readings.add(metric, 1, { state: words[number] as string });
    else readings.add(metric, number * (times ?? 1));
  }
}
