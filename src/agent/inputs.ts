import type { UsageOptions } from '../accounting/options.ts';
import type { ResolveRules, ServedIds } from '../join/resolve.ts';
import type { ClaimHardwareIndex, ClaimTimes } from '../model/claim-hardware.ts';
import type { DeviceRole } from '../model/container-locality.ts';
import type { HostNeed } from '../model/declaration.ts';
import type { Device, VirtualMachine } from '../model/device.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { CheckpointEntry, PodFactsByName, PodResources } from '../model/pod-resources.ts';
import type { FamilyInput, PartKinds } from './known-devices.ts';
import type { ServedDevice } from './resources.ts';
import type { UseSettings } from './use.ts';

export interface AssembleSettings {
  readonly rules: ResolveRules;
  /** Maps the ids of the resources that this agent serves to devices. */
  readonly served?: (known: readonly ServedDevice[]) => ServedIds;
  /** Declared metrics of all families, keyed by name. */
  readonly specs: ReadonlyMap<string, MetricSpec>;
  readonly staleAfterMs: number;
  readonly missingRetentionMs: number;
  /** Number of devices that each family must have at least. */
  readonly expect?: Readonly<Record<string, number>>;
  readonly partKinds?: PartKinds;
  /** Kinds of parts that may end with their holder. */
  readonly passingKinds?: PartKinds;
  /** The role of each family whose devices exchange data, keyed by the name of the family. */
  readonly roles?: ReadonlyMap<string, DeviceRole>;
  /** The NUMA node of each CPU. */
  readonly cpuNodes?: ReadonlyMap<number, number>;
  readonly virtual?: VirtualMachine | undefined;
  /** Hardware that was out of service when it was last listed, and that was not listed since then; as of the latest judgement. */
  readonly unreturned?: () => readonly Device[];
  /** What the families need of the host. */
  readonly needs?: ReadonlyMap<string, readonly HostNeed[]>;
  /** Without them, the use of devices is not compared with their holders. */
  readonly use?: UseSettings & { readonly limits: Pick<UsageOptions, 'allowed-processes' | 'dirty-mib'> };
}

/** Latest input of each source, whatever its age. */
export interface Inputs {
  readonly families: readonly FamilyInput[];
  readonly podResources: PodResources;
  /** Absent while the Pods API is not asked. */
  readonly pods?: PodFactsByName;
  readonly checkpoint: readonly CheckpointEntry[];
  /** The hardware that the files of DRA drivers name for claims. */
  readonly claims?: ClaimHardwareIndex;
  /** When these files were read. Without it, the times of claims and devices are not compared. */
  readonly claimTimes?: ReadonlyMap<string, ClaimTimes>;
}
