import type { DeviceFamily } from '../../src/probes/family.ts';
import type { OverlaidTree, Overlay } from './overlaid-tree.ts';

/** How a family takes part in the histories: its machine, what can be wrong with its devices, and how the agent can go blind. */
export interface OracleFamily {
  readonly family: DeviceFamily;
  /** Options of the probe; `{root}` stands for the machine's root. */
  readonly options: Readonly<Record<string, string>>;
  machine(): { readonly files: Readonly<Record<string, string>>; readonly links: Readonly<Record<string, string>> };
  readonly devices: readonly OracleDevice[];
  readonly faults: readonly Fault[];
  readonly blindings: readonly Blinding[];
  /** A counter that containers see. */
  readonly counter?: Counter;
}

export interface OracleDevice {
  /** `Device.id`. */
  readonly id: string;
  /** As the kubelet hands it out. */
  readonly deviceId: string;
}

/** Something that goes wrong with one device, and can be mended. */
export interface Fault {
  readonly name: string;
  /** Type of the condition that it raises. */
  readonly condition: string;
  /** Conditions that other devices have with it. */
  readonly shadows?: readonly { readonly device: string; readonly condition: string }[];
  /** Other conditions that it may raise, too. */
  readonly alsoRaises?: readonly string[];
  /** Which devices can have it. Default: all. */
  readonly devices?: readonly string[];
  /** The fault alone decides: `never` for what stays until the machine boots. Default: as declared. */
  readonly recovery?: 'never';
  /** Of the faults of one group a device has one at a time. */
  readonly group?: string;
  /** It is told from the past of the device: one that was never seen without it does not have it. */
  readonly isFromPast?: true;
  /** How long it may take until a look shows a change, because it is read seldom. Default 0. */
  readonly paceMs?: number;
  /** Paths of which all must be readable for the fault to be seen, and for its end to be seen. */
  shownBy(device: string): readonly string[];
  /** As `shownBy`, for its end. Default the same. */
  endShownBy?(device: string): readonly string[];
  /** `layer` names what {@link end} takes away. `nowMs`: wall clock. */
  begin(tree: OverlaidTree, device: string, layer: string, nowMs: number): void;
  end?(tree: OverlaidTree, device: string, layer: string): void;
}

/** A way to lose sight. */
export interface Blinding {
  readonly name: string;
  /** `device`: of one device; `family`: of all. */
  readonly scope: 'device' | 'family';
  /** Which devices become what `leaves` says. Default: the one, or all. */
  readonly concerns?: readonly string[];
  /** What stands at which path meanwhile. */
  covers(tree: OverlaidTree, device: string): Readonly<Record<string, Overlay>>;
  /** Paths of which the agent can no longer see what they say. */
  hides(device: string): readonly string[];
  /** Of those, paths in which the agent may still see that something has ended. Default none. */
  mayShow?(device: string): readonly string[];
  /**
   * What becomes of the device as a whole: `unread` when nothing of it can be read, `read` when the rest still is, `gone` when the machine
   * does not have it any more.
   */
  readonly leaves: 'unread' | 'read' | 'gone';
  /** After so long of it the verdict is unknown, or worse, though the rest of the device is read. */
  readonly unknownAfterMs?: number;
  /** How long it may take until a look comes across it, because the file is read seldom. Default 0. */
  readonly paceMs?: number;
  /** Something hangs: others may be unread until the agent has found its way around it. */
  readonly hangs?: true;
}

export interface Counter {
  /** Metric of the device, whose twin the container has. */
  readonly metric: string;
  /** Units of the metric for each unit that is moved. */
  readonly scale: number;
  readonly devices: readonly string[];
  path(device: string): string;
  /** Moves the counter by so many units. */
  move(tree: OverlaidTree, device: string, by: number): void;
}
