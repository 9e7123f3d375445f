import type { DeviceFamily } from '../../src/probes/family.ts';
import type { OverlaidTree, Overlay } from './overlaid-tree.ts';

/** A family in the histories: its machine, the faults of its devices, and the blindings (losses of visibility) of the agent. */
export interface OracleFamily {
  readonly family: DeviceFamily;
  /** Options of the probe; `{root}` is replaced by the machine's root. */
  readonly options: Readonly<Record<string, string>>;
  machine(): { readonly files: Readonly<Record<string, string>>; readonly links: Readonly<Record<string, string>> };
  readonly devices: readonly OracleDevice[];
  readonly faults: readonly Fault[];
  readonly blindings: readonly Blinding[];
  /**
   * Entries of the machine that have the name of a device, relative to the root: its directory and the links to it. Present where the kernel
   * may give a device another name. `deviceId` of such a device is its PCI address.
   */
  entries?(device: string): readonly string[];
  /** How other hardware takes the place of a device under the same name. */
  readonly replacements?: readonly Replacement[];
  /** A counter with a container metric. */
  readonly counter?: Counter;
}

export interface OracleDevice {
  /** `Device.id`. */
  readonly id: string;
  /** Device id in the kubelet. */
  readonly deviceId: string;
}

/** Other hardware in the place of some devices. */
export interface Replacement {
  /** The devices of this hardware. Their names stay. */
  readonly devices: readonly string[];
  /** Directory that the kernel makes anew. */
  readonly directory: string;
  /** `count`: a number that no earlier hardware had. */
  begin(tree: OverlaidTree, count: number): void;
}

/** A fault of one device that can begin and end. */
export interface Fault {
  readonly name: string;
  /** Type of the condition that it raises. */
  readonly condition: string;
  /** Conditions that the fault also causes on other devices. */
  readonly shadows?: readonly { readonly device: string; readonly condition: string }[];
  /** Other conditions that the fault may raise on the same device. */
  readonly alsoRaises?: readonly string[];
  /** Which devices can have it. Default: all. */
  readonly devices?: readonly string[];
  /** `never`: the condition stays until the machine boots. Default: as declared. */
  readonly recovery?: 'never';
  /** A device has at most one fault of a group at a time. */
  readonly group?: string;
  /** The fault is found by comparison with the past: a device that was never seen without it does not have it. */
  readonly isFromPast?: true;
  /** Longest time until a collection shows a change, because the file is read rarely. Default 0. */
  readonly paceMs?: number;
  /** Paths that must all be readable to see the fault, and to see its end. */
  shownBy(device: string): readonly string[];
  /** Like `shownBy`, for the end of the fault. Default: the same paths. */
  endShownBy?(device: string): readonly string[];
  /** `layer`: name of the change that {@link end} removes. `nowMs`: wall clock. */
  begin(tree: OverlaidTree, device: string, layer: string, nowMs: number): void;
  end?(tree: OverlaidTree, device: string, layer: string): void;
}

/** A loss of visibility. */
export interface Blinding {
  readonly name: string;
  /** Affects one device, or all devices of the family. */
  readonly scope: 'device' | 'family';
  /** Devices that `leaves` applies to. Default: the devices of the scope. */
  readonly concerns?: readonly string[];
  /** Replacements by path. */
  covers(tree: OverlaidTree, device: string): Readonly<Record<string, Overlay>>;
  /** Paths whose content the agent can no longer see. */
  hides(device: string): readonly string[];
  /** Hidden paths in which the agent may still see the end of a fault. Default: none. */
  mayShow?(device: string): readonly string[];
  /**
   * State of the whole device: `unread` when nothing of it can be read, `read` when the rest is still read, `gone` when the machine no
   * longer has it.
   */
  readonly leaves: 'unread' | 'read' | 'gone';
  /** After this time the verdict is unknown, or worse, even when the rest of the device is read. */
  readonly unknownAfterMs?: number;
  /** Longest time until a collection meets it, because the file is read rarely. Default 0. */
  readonly paceMs?: number;
  /** A read hangs: other devices may be unread until the agent avoids it. */
  readonly hangs?: true;
}

export interface Counter {
  /** Metric of the device that also has a container metric. */
  readonly metric: string;
  /** Units of the metric per unit moved. */
  readonly scale: number;
  readonly devices: readonly string[];
  path(device: string): string;
  /** Increases the counter by `by` units. */
  move(tree: OverlaidTree, device: string, by: number): void;
}
