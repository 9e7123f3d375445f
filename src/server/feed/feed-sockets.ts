import type { HealthFeedOptions } from '../options.ts';
import { draHealth } from './dra-health.ts';
import { serveFeedSocket } from './feed-socket.ts';
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

/** Serves each protocol that has a socket. Returns a function that closes all; when one cannot be served, none is. */
export async function serveFeedSockets(
  options: HealthFeedOptions,
  { feed, check, askedBy }: FeedSocketsDependencies,
): Promise<() => Promise<void>> {
  const families = (protocol: string): ReadonlySet<string> =>
    new Set([...askedBy].filter(([, asked]) => asked === protocol).map(([family]) => family));
  const sockets = [
    [options.socket, draHealth(feed)],
    [options['nvhcd-socket'], nodeCheck(check)],
    [options['metricssvc-socket'], metricsService(feed, families('metricssvc'))],
    [options['xpumd-socket'], deviceInfo(feed, families('xpumd'))],
  ] as const;
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(closers.map((one) => one()));
  };
  for (const [path, protocol] of sockets) {
    if (path === '') continue;
    closers.push(
      await serveFeedSocket(path, protocol).catch(async (error) => {
        await close();
        throw error;
      }),
    );
  }
  return close;
}
