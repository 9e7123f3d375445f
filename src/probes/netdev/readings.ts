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
  return [...readings.list(), ...counted, ...settingReadings(settings)];
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

/** Errors have no port: a function with several ports gives their sum, and only when all of them are known. */
function counterReadings(rows: readonly CounterRow[], ports: readonly PortCounters[]): readonly Reading[] {
  return rows.flatMap(({ name, metric, labels = {} }): Reading[] => {
    const known = ports.flatMap(({ port, counters: { [name]: count } }) => (count === undefined ? [] : [{ port, count }]));
    if (metric !== errors)
      return known.map(({ port, count }) => ({ metric: metric.name, labels: { port, ...labels }, value: plainValue(count) }));
    if (known.length === 0 || known.length < ports.length) return [];
    return [{ metric: metric.name, labels, value: plainValue(known.reduce((sum, { count }) => sum + count, 0n)) }];
  });
}

const settingReadings = (settings: Settings): readonly Reading[] =>
  SETTINGS.flatMap(({ name, metric: { name: metric, labels }, words = [], times }) => {
    const { [name]: number } = settings;
    if (number === undefined || (number === 0 && times !== undefined)) return [];
    if (labels.length > 0) return [{ metric, labels: { state: words[number] as string }, value: 1 }];
    return [{ metric, value: number * (times ?? 1) }];
  });
