import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Reading } from '../../model/metric.ts';
import { keptBy } from '../../model/readings.ts';
import { pcieReadings } from '../kit/pcie/pcie.ts';
import { findingsOf } from './findings.ts';
import { deviceOf, type HcaFacts, type HcaSample } from './hca.ts';
import { metrics } from './metrics.ts';
import { isPortUp, type PortFacts, type PortLevel, rateText } from './port.ts';

const BYTES_PER_GIGABIT = 125_000_000;

/** Data, besides the samples, that is needed for the reports. */
export interface ReportSettings {
  /** Names below `/dev/infiniband`; undefined when that directory cannot be listed. */
  readonly charNodes: ReadonlySet<string> | undefined;
  /** Says whether a port must be up. `device` is the name of the physical function. */
  readonly isExpected: (device: string, port: string) => boolean;
}

export function reportsOf(samples: readonly HcaSample[], { charNodes, isExpected }: ReportSettings): readonly DeviceReport[] {
  const physical = physicalFunctions(samples);
  return samples.map((sample): DeviceReport => {
    const parent = physical.get(sample.facts.location.physicalFunction ?? '');
    const owner = (parent ?? sample).facts.name;
    const findings = findingsOf(sample, {
      ...(parent && { parent }),
      ...(charNodes && { charNodes }),
      isExpected: (port) => isExpected(owner, port),
    });
    const device = knownDevice(sample.facts, parent?.facts, charNodes?.has('rdma_cm') === true);
    return { device, read: { readings: readingsOf(sample), findings } };
  });
}

interface Known {
  readonly device: Device;
  readonly parent: HcaFacts | undefined;
  readonly hasRdmaCm: boolean;
}

const DEVICES = new WeakMap<HcaFacts, Known>();

/** The same object while the facts are the same. */
function knownDevice(facts: HcaFacts, parent: HcaFacts | undefined, hasRdmaCm: boolean): Device {
  const before = DEVICES.get(facts);
  if (before !== undefined && before.parent === parent && before.hasRdmaCm === hasRdmaCm) return before.device;
  const device = deviceOf(facts, parent, hasRdmaCm);
  DEVICES.set(facts, { device, parent, hasRdmaCm });
  return device;
}

/** Returns the samples of physical functions, keyed by PCI address. */
function physicalFunctions(samples: readonly HcaSample[]): ReadonlyMap<string, HcaSample> {
  const physical = new Map<string, HcaSample>();
  for (const sample of samples) {
    const { kind, pciAddress } = sample.facts.location;
    if (kind === 'pf' && pciAddress !== undefined) physical.set(pciAddress, sample);
  }
  return physical;
}

function readingsOf({ facts, ports, device, pcie, sensors, isInOtherNamespace }: HcaSample): readonly Reading[] {
  if (isInOtherNamespace) return [infoReading(facts)];
  const readings = [infoReading(facts)];
  const unmapped = new Set(device.unused);
  let { unreadable } = device;
  for (const { port, level, facts: ofPort, counters } of ports) {
    readings.push(...stateReadings(port, level, ofPort), ...counters.readings);
    for (const counter of counters.saturated) readings.push({ metric: metrics.counterSaturated.name, labels: { port, counter }, value: 1 });
    for (const name of counters.unused) unmapped.add(name);
    unreadable += counters.unreadable;
  }
  readings.push(
    ...device.readings,
    { metric: metrics.unreadableFiles.name, value: unreadable },
    { metric: metrics.unmappedCounters.name, value: unmapped.size },
    ...(pcie === undefined ? [] : pcieReadings(pcie)),
    ...(sensors?.readings ?? []),
  );
  return readings;
}

const infoReading = keptBy((facts: HcaFacts): Reading => {
  const labels = {
    board_id: facts.boardId ?? '',
    node_guid: facts.nodeGuid ?? '',
    sys_image_guid: facts.systemImageGuid ?? '',
    node_type: facts.nodeType ?? '',
    hardware_revision: facts.hardwareRevision ?? '',
  };
  return { metric: metrics.info.name, labels, value: 1 };
});

const STATES = new WeakMap<PortFacts, { readonly port: string; readonly level: PortLevel; readonly readings: readonly Reading[] }>();

/** The same objects while state and facts of the port are the same. */
function stateReadings(port: string, level: PortLevel, facts: PortFacts): readonly Reading[] {
  const before = STATES.get(facts);
  if (before !== undefined && before.level === level && before.port === port) return before.readings;
  const labels = { port };
  const readings: Reading[] = [];
  const isUp = isPortUp(level);
  if (isUp !== undefined) readings.push({ metric: metrics.linkUp.name, labels, value: isUp ? 1 : 0 });
  if (level.rate !== undefined) {
    readings.push({ metric: metrics.linkSpeed.name, labels, value: level.rate.gigabits * BYTES_PER_GIGABIT });
    if (level.rate.lanes !== undefined) readings.push({ metric: metrics.linkWidth.name, labels, value: level.rate.lanes });
  }
  readings.push(
    { metric: metrics.portInfo.name, labels: { port, ...infoLabels(level, facts) }, value: 1 },
    ...stateReading(metrics.portState.name, port, level.state),
    ...stateReading(metrics.portPhysicalState.name, port, level.physicalState),
  );
  STATES.set(facts, { port, level, readings });
  return readings;
}

function infoLabels(level: PortLevel, facts: PortFacts): Readonly<Record<string, string>> {
  return {
    link_layer: facts.linkLayer ?? '',
    netdev: facts.netdev ?? '',
    rate: rateText(level.rate),
    lid: facts.lid === undefined ? '' : String(facts.lid),
    sm_lid: facts.smLid === undefined ? '' : String(facts.smLid),
  };
}

const stateReading = (metric: string, port: string, state: string | undefined): Reading[] =>
  state === undefined ? [] : [{ metric, labels: { port, state }, value: 1 }];
