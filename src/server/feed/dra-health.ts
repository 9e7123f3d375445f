import type { ServerWritableStream } from '@grpc/grpc-js';
import {
  type DeviceHealth,
  DRAResourceHealthService,
  HealthStatus,
  type NodeWatchResourcesResponse,
} from '../../generated/drahealth/v1/api.ts';
import { DRAResourceHealthService as AlphaService } from '../../generated/drahealth/v1alpha1/api.ts';
import type { FeedList } from './feed-list.ts';
import { type FeedProtocol, streamLists } from './feed-socket.ts';
import { type HealthFeed, TIMEOUT_MS } from './health-feed.ts';

/** The kubelet's API for the health of DRA devices, in both versions. */
export function draHealth(feed: HealthFeed): FeedProtocol {
  return (server, connection) => {
    const nodeWatchResources = (call: ServerWritableStream<object, NodeWatchResourcesResponse>): void =>
      streamLists(call, feed, connection, (list) => ({ devices: healthOf(list) }));
    server.addService(DRAResourceHealthService, { nodeWatchResources });
    server.addService(AlphaService, { nodeWatchResources });
  };
}

function healthOf({ devices }: FeedList): DeviceHealth[] {
  return devices.flatMap(({ state, names, health, message }) =>
    names.map(({ pool, device }) => ({
      device: { poolName: pool, deviceName: device },
      health: HealthStatus[health],
      lastUpdatedTime: BigInt(Math.floor(state.readAtMs / 1_000)),
      healthCheckTimeoutSeconds: BigInt(TIMEOUT_MS / 1_000),
      message,
    })),
  );
}
