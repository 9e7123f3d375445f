/** Sockets that clients of the agent look for. Closed set, a label of a metric. */
export type SocketName = 'control' | 'dra' | 'nvhcd' | 'metricssvc' | 'xpumd';

export interface SocketStats {
  readonly name: SocketName;
  readonly path: string;
  /** Why clients do not reach an agent there; absent while they do. */
  readonly problem?: string;
}
