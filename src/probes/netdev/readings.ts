import type { MetricSpec, Reading, Value } from '../../model/metric.ts';
import type { NetworkFunction } from './discover.ts';
import { metrics } from './metrics.ts';
import type { PortSample } from './port.ts';
import type { Traffic, VirtualFunction } from './virtual-function.ts';

const BYTES_PER_MEGABIT = 125_000;

/** Collects the readings that have a value. */
class Readings {
  readonly list: Reading[] = [];

  add({ name: metric }: MetricSpec, value: Value | boolean | undefined, labels?: Readonly<Record<string, string>>): void {
    if (value === undefined) return;
    this.list.push({ metric, ...(labels !== undefined && { labels }), value: asValue(value) });
  }
}

function asValue(value: Value | boolean): Value {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'bigint' && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** Readings of a physical function, or of a function without SR-IOV. */
export function physicalReadings(fn: NetworkFunction, ports: readonly PortSample[]): Reading[] {
  const readings = new Readings();
  addInfo(readings, fn, undefined);
  if (fn.kind === 'pf') {
    readings.add(metrics.functions, fn.virtualFunctions);
    readings.add(metrics.functionsMax, fn.maxVirtualFunctions);
  }
  for (const sample of ports) {
    const labels = { port: sample.port };
    addLink(readings, sample, sample.isUp);
    readings.add(metrics.mtu, sample.mtu, labels);
    readings.add(metrics.carrierLosses, sample.carrierLosses, labels);
    readings.add(metrics.transmitTimeouts, sample.transmitTimeouts, labels);
    addTraffic(readings, sample.port, sample.traffic);
  }
  // Errors have no port: a function with several ports gives their sum, and only when all of them are known.
  for (const [kind, counts] of Object.entries(errorCounts(ports))) readings.add(metrics.errors, sumOf(counts), { kind });
  return readings.list;
}

const errorCounts = (ports: readonly PortSample[]): Readonly<Record<string, readonly (bigint | undefined)[]>> => ({
  receive: ports.map(({ traffic }) => traffic.receiveErrors),
  transmit: ports.map(({ traffic }) => traffic.transmitErrors),
  crc: ports.map(({ crcErrors }) => crcErrors),
  missed: ports.map(({ missedErrors }) => missedErrors),
});

function sumOf(counts: readonly (bigint | undefined)[]): bigint | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 || known.length < counts.length ? undefined : known.reduce((a, b) => a + b, 0n);
}

/** What is known of one virtual function. */
export interface VirtualSample {
  readonly fn: NetworkFunction;
  /** What the physical function tells. */
  readonly fromParent?: VirtualFunction;
  readonly traffic?: Traffic;
  /** First port of the physical function. */
  readonly port?: PortSample;
  readonly representor?: string;
}

export function virtualReadings({ fn, fromParent, traffic, port, representor }: VirtualSample): Reading[] {
  const readings = new Readings();
  addInfo(readings, fn, representor);
  const number = port?.port ?? '1';
  if (port !== undefined) addLink(readings, port, fromParent?.linkState === 'disable' ? false : port.isUp);
  if (traffic !== undefined) {
    addTraffic(readings, number, traffic);
    readings.add(metrics.errors, traffic.receiveErrors, { kind: 'receive' });
    readings.add(metrics.errors, traffic.transmitErrors, { kind: 'transmit' });
  }
  if (fromParent?.linkState !== undefined) readings.add(metrics.linkState, 1, { state: fromParent.linkState });
  readings.add(metrics.spoofCheck, fromParent?.checksSpoofing);
  readings.add(metrics.trusted, fromParent?.isTrusted);
  readings.add(metrics.vlan, fromParent?.vlan);
  if (fromParent?.transmitLimit !== undefined && fromParent.transmitLimit > 0)
    readings.add(metrics.transmitLimit, fromParent.transmitLimit * BYTES_PER_MEGABIT);
  return readings.list;
}

function addInfo(readings: Readings, { interfaces, rdmaDevices }: NetworkFunction, representor: string | undefined): void {
  const labels = { interface: interfaces[0] ?? '', representor: representor ?? '', rdma_device: rdmaDevices[0] ?? '' };
  readings.add(metrics.info, 1, labels);
}

function addLink(readings: Readings, { port, megabits }: PortSample, isUp: boolean | undefined): void {
  readings.add(metrics.linkUp, isUp, { port });
  if (megabits !== undefined) readings.add(metrics.linkSpeed, megabits * BYTES_PER_MEGABIT, { port });
}

function addTraffic(readings: Readings, port: string, traffic: Traffic): void {
  const labels = { port };
  readings.add(metrics.receivedBytes, traffic.receivedBytes, labels);
  readings.add(metrics.transmittedBytes, traffic.transmittedBytes, labels);
  readings.add(metrics.receivedPackets, traffic.receivedPackets, labels);
  readings.add(metrics.transmittedPackets, traffic.transmittedPackets, labels);
  readings.add(metrics.receivedMulticast, traffic.receivedMulticast, labels);
  readings.add(metrics.receivedBroadcast, traffic.receivedBroadcast, labels);
  readings.add(metrics.dropped, traffic.receivedDropped, { port, direction: 'receive' });
  readings.add(metrics.dropped, traffic.transmittedDropped, { port, direction: 'transmit' });
}
