import type { DeviceFamily } from '../../src/probes/family.ts';
import type { OverlaidTree, Overlay } from './overlaid-tree.ts';

/** A family in the histories: its machine, the faults of its devices, and the blindings (losses of visibility) of the agent. */
export interface OracleFamily {
  readonly family: DeviceFamily;
  /** The same family, whose sources are read at most once in this time. Each history draws one of {@link PACES_MS}. */
  atPace?(paceMs: number): OracleFamily;
  /** Options of the probe; `{root}` is replaced by the machine's root. */
  readonly options: Readonly<Record<string, string>>;
  machine(): { readonly files: Readonly<Record<string, string>>; readonly links: Readonly<Record<string, string>> };
  readonly devices: readonly OracleDevice[];
  /** Name of a device while its identity cannot be read. Default: none has such a name. */
  placeOf?(device: string): string;
  readonly faults: readonly Fault[];
  readonly blindings: readonly Blinding[];
  /** Names that the kernel gives to devices, and that may change while the machine runs. */
  readonly kernelNames?: KernelNames;
  /** How other hardware takes the place of a device. */
  readonly replacements?: readonly Replacement[];
  /** Hardware that tells the same number as other hardware. */
  readonly duplicates?: readonly Duplicate[];
  /** A counter with a container metric. */
  readonly counter?: Counter;
}

/** Times between two reads of a source: each refresh, and two longer ones. */
export const PACES_MS = [0, 20_000, 50_000] as const;

export interface OracleDevice {
  /** `Device.id`. */
  readonly id: string;
  /** Device id in the kubelet. */
  readonly deviceId: string;
}

/** Names of the kernel, such as `card0`. */
export interface KernelNames {
  /** The first name of each device that has one. */
  readonly first: Readonly<Record<string, string>>;
  /** The name is `Device.id`. `deviceId` of such a device is its PCI address. */
  readonly areIds?: true;
  /** A name that no device has had. */
  fresh(count: number): string;
  /** Directories and links of a device, relative to the root, with the last part of their path under that name. */
  entries(device: string, name: string): Readonly<Record<string, string>>;
  /** Writes the name into files that hold it. */
  write?(tree: OverlaidTree, device: string, name: string): void;
}

/** Other hardware in the place of some devices. */
export interface Replacement {
  /** The devices of this hardware. */
  readonly devices: readonly string[];
  /** Directory that the kernel makes anew. */
  readonly directory: string;
  /** A file that tells which hardware it is. While it is covered, none takes the place. */
  readonly toldIn?: string;
  /** Nothing identifies such hardware, so what is remembered of its place stays. */
  readonly isUnidentified?: true;
  /** `count`: a number that no earlier hardware had. */
  begin(tree: OverlaidTree, count: number): void;
  /** Names of the devices by the number. Default: their names stay. */
  names?(count: number): Readonly<Record<string, string>>;
}

/** A second piece of hardware that tells the number of a first one. It is absent at the begin of a history. Each of the two can leave. */
export interface Duplicate {
  readonly first: readonly string[];
  /** The devices of the second one, in the order of those of the first one. */
  readonly second: readonly string[];
  /** The number is their whole identity, so that a fault of one is a fault of both. */
  readonly isIdentity: boolean;
  /** A file that lists the hardware. While it is covered, none appears or leaves. */
  readonly listedIn?: string;
  /** Code of the problem while both are read. */
  readonly problem?: string;
  /** Takes one of them out of the machine, until the layer is taken. */
  leave(tree: OverlaidTree, devices: readonly string[], layer: string): void;
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
  /**
   * The fault changes a value that the agent compares among the devices of the machine. Its condition holds on each device whose value is
   * not the only most frequent one. The faults of a device with the same condition make one value.
   */
  readonly isCompared?: true;
  /** Longest time until a collection shows a change, because the file is read rarely. Default 0. */
  readonly paceMs?: number;
  /** Paths that must all be readable to see the fault, and to see its end. `PATH: PART` is a part of a file. */
  shownBy(device: string): readonly string[];
  /** Paths whose content about the device nobody can see while the fault lasts: the driver does not tell it. Default: none. */
  hides?(device: string): readonly string[];
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
  /** Changes of files in which later faults still show. They end with the layer. */
  begin?(tree: OverlaidTree, device: string, layer: string): void;
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
  /** Longest time until the hidden files are read again after its end, because the list of files is read rarely. Default 0. */
  readonly returnsMs?: number;
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
  /** Longest time until a collection reads the counter again. Default 0. */
  readonly paceMs?: number;
  /** Increases the counter by `by` units. */
  move(tree: OverlaidTree, device: string, by: number): void;
}
