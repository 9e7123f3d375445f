import type { ReadyRules } from '../health/journal/ready-devices.ts';
import type { Clock } from '../host/clock.ts';
import type { ReadingHistoryStore } from '../incidents/history.ts';
import type { ListedIncident } from '../incidents/record.ts';
import type { RecordRead } from '../incidents/store.ts';
import type { Logger } from '../log/logger.ts';
import type { PluginStats } from '../model/agent-stats.ts';
import type { ProblemSpec } from '../model/collection.ts';
import type { ActivitySpec } from '../model/declaration.ts';
import type { HealthEvent } from '../model/events.ts';
import type { SavedFault } from '../model/fault.ts';
import type { ConditionSpec } from '../model/health.ts';
import type { ObservedSpans } from '../model/observed-spans.ts';
import type { ReleaseAnswer, ReleaseRequest } from '../model/release.ts';
import type { PageReadings } from '../model/shared-metrics.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Access } from './access/access.ts';
import type { ComparePassword } from './access/passwords.ts';
import type { ReportUsage } from './api/usage.ts';
import type { HealthFeed } from './feed/health-feed.ts';
import type { ScrapeFormat } from './http/answer.ts';
import type { WebOptions } from './options.ts';

/** The metrics page in its formats, in pieces. */
export interface ScrapedPage {
  page(format: ScrapeFormat): Promise<{ readonly plain: readonly Buffer[]; gzipped(): Promise<readonly Buffer[]> }>;
  readonly contentTypes: Readonly<Record<ScrapeFormat, string>>;
}

/** Records of incidents. */
export interface IncidentSource {
  /** The newest first. */
  list(): readonly ListedIncident[];
  /** Resolves to undefined for an unknown id. Never rejects. */
  read(id: string): Promise<RecordRead | undefined>;
  /** Faults, the oldest first. */
  faults?(): readonly SavedFault[];
}

/** Data sources of the server. It reads the latest snapshot, and never the hardware or the kubelet. */
export interface ServerDependencies {
  readonly exposition: ScrapedPage;
  /** Without `subscribe`, pages are not live. */
  readonly store: { snapshot(): Snapshot | undefined; subscribe?(notify: () => void): () => void };
  /** The latest readings of all devices. When absent, there are no rates and no charts. */
  readonly history?: () => ReadingHistoryStore;
  /** Statistics of the device plugin; undefined while no resource is configured. */
  readonly plugin?: () => PluginStats | undefined;
  /** Returns why the agent cannot do its work; undefined while it can. */
  readonly fault?: () => string | undefined;
  /** Whether a device can be used, by its verdict and the health policy. By default, by its state. */
  readonly isUsable?: ReadyRules['isUsable'];
  /** Finds the devices of a Kubernetes resource. When absent, those of no resource are known. */
  readonly devicesOf?: ReadyRules['devicesOf'];
  /** Status of the agent for `/api/v1/status`: plain data with stable names. */
  status(): object;
  /** Returns events newer than the event with id `since`, oldest first. When absent, `/api/v1/events` is empty. */
  readonly events?: (since: number) => readonly HealthEvent[];
  /** When the agent judged devices. When absent, all time since the first known state counts. */
  readonly watched?: () => ObservedSpans;
  /** When absent, there are no incidents. */
  readonly incidents?: IncidentSource;
  /** Reports what containers used. When absent, `/api/usage` is not there. */
  readonly usage?: ReportUsage;
  /** Verdicts for clients that follow them. When absent, `/api/health/watch` is not there. */
  readonly feed?: HealthFeed;
  /** Reads the configuration file again. Resolves to what is wrong with it. Absent when there is no file. */
  readonly reload?: () => Promise<string | undefined>;
  /** Lets a family close its driver for a time. */
  readonly release?: (request: ReleaseRequest) => Promise<ReleaseAnswer>;
  readonly families: readonly {
    readonly name: string;
    readonly problems: readonly ProblemSpec[];
    readonly conditions?: readonly ConditionSpec[];
    readonly shows?: PageReadings;
    readonly activity?: ActivitySpec;
  }[];
  readonly version: string;
  readonly node?: string;
  /** Names of this machine by which clients may address the agent. */
  readonly hostNames?: readonly string[];
  readonly options: WebOptions;
  /** The access and its changes. When absent, everybody may read everything by plain HTTP. */
  readonly access?: { readonly current: Access; subscribe(apply: (access: Access) => void): void };
  /** Compares passwords. By default, a thread of the server does. */
  readonly comparePassword?: ComparePassword;
  readonly logger: Logger;
  readonly clock?: Clock;
}
