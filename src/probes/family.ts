import type { Host } from '../host/host.ts';
import type { DeviceAccess } from '../model/access.ts';
import type { Resolve } from '../model/allocation.ts';
import type { Collection, ProblemSpec } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { ConditionSpec } from '../model/health.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { OptionSpecs, OptionValues } from '../model/options.ts';
import type { PciSign } from '../model/pci-sign.ts';
import type { Scenario, SimulatedHardware } from '../model/simulated.ts';

/**
 * The whole contract of a device family. A family is one folder below `src/probes` whose `index.ts` exports a constant
 * `family` of this type. The first members are data; the functions take and give plain data.
 */
export interface DeviceFamily<S extends OptionSpecs = OptionSpecs> {
  /** Equal to the folder's name. */
  readonly name: string;
  /** One line for `--help` and the reference: which hardware. */
  readonly summary: string;
  readonly metrics: readonly MetricSpec[];
  readonly conditions: readonly ConditionSpec[];
  readonly problems: readonly ProblemSpec[];
  /**
   * Whether the machine may have devices of the family: false where a probe would find none. Called at each refresh for a family that never
   * had any, so it looks at a few directories at most, and it opens no file of a device. Default: it may.
   */
  isPresent?(host: Host): boolean;
  /** By which `doctor` sees hardware of this family that no driver is bound to. */
  readonly signs?: readonly PciSign[];
  /** Become `--probe.<name>.<option>`. */
  readonly options: S;
  createProbe(host: Host, options: OptionValues<S>): Probe;
  /** Only where ids are more than a device's id or alias. */
  readonly resolve?: Resolve;
  /** Only for families whose devices the companion plugin can serve. */
  access?(device: Device): DeviceAccess;
  /** The family's part of a simulated node at one moment. */
  simulate?(scenario: Scenario): SimulatedHardware;
}

/** Reads one family's hardware. Lives in a thread of its own, so it may block. */
export interface Probe {
  /**
   * One read: the whole truth as plain data. Never called while an earlier call is pending. Missing hardware is an empty
   * list, a failed read a problem; it throws only for a bug.
   */
  collect(): Collection | Promise<Collection>;
  /** "Something happened": carries no data, only makes the next `collect` come sooner. Returns the way to stop watching. */
  watch?(wake: () => void): () => void;
  close?(): void | Promise<void>;
}

/** Keeps literal types while checking the shape. */
export function defineFamily<S extends OptionSpecs>(family: DeviceFamily<S>): DeviceFamily<S> {
  return family;
}
