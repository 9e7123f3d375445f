import type { UsageOptions } from '../accounting/options.ts';
import type { Prices } from '../accounting/report.ts';
import type { HealthConfig } from '../health/policy/policy-config.ts';
import type { Roots } from '../host/host.ts';
import type { IncidentOptions } from '../incidents/options.ts';
import type { CdiOptions, DraOptions, PodResourcesOptions, PodsApiOptions } from '../kubelet/options.ts';
import type { ContainerMetricOptions, LabelOptions } from '../metrics/options.ts';
import type { PoolRule } from '../model/allocation.ts';
import type { IdleThresholds } from '../model/declaration.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import type { PluginOptions } from '../plugin/options.ts';
import type { DeviceFamily } from '../probes/family.ts';
import type { AccessSource } from '../server/access/access.ts';
import type { HealthFeedOptions, WebOptions } from '../server/options.ts';
import type { StallOptions } from '../waiting/options.ts';
import type { DeviceOptions, RefreshOptions, StateOptions } from './options.ts';

/** All settings of the agent. The caller has validated the values. */
export interface AgentSettings {
  readonly roots: Roots;
  readonly refresh: RefreshOptions;
  readonly device: DeviceOptions;
  readonly podResources: PodResourcesOptions;
  /** Absent while the Pods API is not asked. */
  readonly podsApi?: PodsApiOptions;
  readonly dra: DraOptions;
  readonly cdi: CdiOptions;
  /** The enabled families with their options. */
  readonly families: readonly { readonly family: DeviceFamily; readonly options: Readonly<Record<string, unknown>> }[];
  readonly pools: readonly PoolRule[];
  readonly health: HealthConfig;
  /** Without resources the device plugin does not run. */
  readonly plugin: { readonly options: PluginOptions; readonly resources: readonly PluginResource[] };
  readonly state: StateOptions;
  readonly usage: UsageOptions;
  readonly stall: StallOptions;
  readonly incidents: IncidentOptions;
  /** Number of devices that each family must have at least. */
  readonly expect: Readonly<Record<string, number>>;
  /** Thresholds of idleness that differ from those of the family, keyed by family. */
  readonly idle: IdleThresholds;
  readonly prices: Prices;
  readonly labels: LabelOptions;
  readonly containerMetrics: ContainerMetricOptions;
  readonly web: WebOptions;
  readonly healthFeed: HealthFeedOptions;
  /** Where TLS and passwords come from. When absent, the agent serves plain HTTP to everybody. */
  readonly access?: AccessSource;
  /** Name of the node, for display only. */
  readonly node: string;
}
