import type { HealthFeedOptions } from '../options.ts';
import type { SocketServer } from '../sockets.ts';
import { draHealth } from './dra-health.ts';
import { createFeedServer } from './feed-socket.ts';
import type { HealthFeed } from './health-feed.ts';
import { metricsService } from './metricssvc.ts';
import { type NodeCheckDependencies, nodeCheck } from './nvhcd.ts';
import { deviceInfo } from './xpumd.ts';

export interface FeedSocketsDependencies {
  readonly feed: HealthFeed;
  readonly check: NodeCheckDependencies;
  /** The protocol by which plugins ask for the devices of a family, by the name of the family. */
  readonly askedBy: ReadonlyMap<string, 'metricssvc' | 'xpumd' | undefined>;
}

/** A server for each protocol that has a socket. */
export function feedServers(options: HealthFeedOptions, { feed, check, askedBy }: FeedSocketsDependencies): readonly SocketServer[] {
  const families = (protocol: string): ReadonlySet<string> =>
    new Set([...askedBy].filter(([, asked]) => asked === protocol).map(([family]) => family));
  const protocols = [
    ['dra', options.socket, draHealth(feed)],
    ['nvhcd', options['nvhcd-socket'], nodeCheck(check)],
    ['metricssvc', options['metricssvc-socket'], metricsService(feed, families('metricssvc'))],
    ['xpumd', options['xpumd-socket'], deviceInfo(feed, families('xpumd'))],
  ] as const;
  const mode = Number.parseInt(options['socket-mode'], 8);
  return protocols.filter(([, path]) => path !== '').map(([name, path, protocol]) => ({ name, path, mode, ...createFeedServer(protocol) }));
}
