import type { ChartLine } from '../../board/chart-html.ts';
import type { DisplayState } from '../../board/device-view.ts';
import type { Fleet, FleetNode, FleetProblem } from '../fleet.ts';

/** Times that the curves of a node can show, in hours. */
export const SPANS = { '6h': 6, '24h': 24, '7d': 168 } as const;
export type Span = keyof typeof SPANS;

/** What the pages ask for. A detail is read from Prometheus when its page is asked for. */
export interface FleetSources {
  readonly version: string;
  /** The latest fleet; undefined before the first answer. */
  fleet(): Fleet | undefined;
  /** Why the latest read failed. */
  trouble?(): string | undefined;
  /** What a person has to know first. */
  sentence(fleet: Fleet): string;
  /** Nodes that a filter leaves, in their order. */
  filter(fleet: Fleet, text: string): readonly FleetNode[];
  node(node: FleetNode, span: Span): Promise<NodeDetail>;
  /** Without `pod`: of all pods of the namespace. */
  held(namespace: string, pod: string | undefined): Promise<HeldDetail>;
  /** Address of the board of a node, where one is configured. */
  boardUrl?(node: FleetNode): string | undefined;
  now(): number;
}

export interface NodeDetail {
  readonly devices: readonly FleetDevice[];
  readonly curves: readonly Curve[];
  readonly problems: readonly FleetProblem[];
}

export interface FleetDevice {
  readonly family: string;
  readonly id: string;
  readonly name: string;
  readonly model?: string;
  readonly state: DisplayState;
  readonly utilizationRatio?: number;
  /** `namespace/pod`; absent where the holders are not known. */
  readonly holders?: readonly string[];
}

/** Values over the span, with gaps where Prometheus has none. */
export interface Curve {
  readonly title: string;
  readonly metric: string;
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}

/** What a pod or a namespace holds, and held in the last day. */
export interface HeldDetail {
  readonly held: readonly HeldDevice[];
  readonly problems: readonly FleetProblem[];
}

export interface HeldDevice {
  readonly cluster?: string;
  readonly node: string;
  readonly family: string;
  readonly id: string;
  readonly name: string;
  readonly pod: string;
  readonly isHeld: boolean;
  /** Device hours of the last day. */
  readonly heldHours?: number;
  readonly busyHours?: number;
  readonly idleHours?: number;
}
