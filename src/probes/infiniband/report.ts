import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import { sameListWhenEqual } from '../../model/step-cache.ts';
import { findingsOf } from './findings.ts';
import { deviceOf, type HcaFacts, type HcaSample } from './hca.ts';

/** Data, besides the samples, that is needed for the reports. */
export interface ReportSettings {
  /** Names below `/dev/infiniband`; undefined when that directory cannot be listed. */
  readonly charNodes: ReadonlySet<string> | undefined;
  /** Says whether a port must be up. `device` is the name of the physical function. */
  readonly isExpected: (device: string, port: string) => boolean;
}

export function reportsOf(samples: readonly HcaSample[], settings: ReportSettings): readonly DeviceReport[] {
  const physical = physicalFunctions(samples);
  return samples.map((sample): DeviceReport => {
    const { device, findings } = known(sample, physical.get(sample.facts.location.physicalFunction ?? ''), settings);
    return { device, read: { readings: sample.readings, findings } };
  });
}

interface CachedFindings {
  readonly inputs: readonly unknown[];
  readonly device: Device;
  readonly findings: readonly Finding[];
}

const KNOWN = new WeakMap<HcaFacts, CachedFindings>();

/** The same objects while the device and its physical function say the same. */
function known(sample: HcaSample, parent: HcaSample | undefined, { charNodes, isExpected }: ReportSettings): CachedFindings {
  const { facts, ports, pcie, sensors, isInOtherNamespace } = sample;
  const inputs = [ports, pcie, sensors, isInOtherNamespace, parent?.facts, parent?.ports, parent?.pcie, charNodes];
  const before = KNOWN.get(facts);
  if (before !== undefined && sameListWhenEqual(before.inputs, inputs) === before.inputs) return before;
  const owner = (parent ?? sample).facts.name;
  const findings = findingsOf(sample, {
    ...(parent && { parent }),
    ...(charNodes && { charNodes }),
    isExpected: (port) => isExpected(owner, port),
  });
  const now = { inputs, device: deviceOf(facts, parent?.facts, charNodes?.has('rdma_cm') === true), findings };
  KNOWN.set(facts, now);
  return now;
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
