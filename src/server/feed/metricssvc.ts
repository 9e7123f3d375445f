import { type handleUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import {
  type GPUGetRequest,
  type GPUState,
  type GPUStateResponse,
  type ListRequest,
  MetricsServiceService,
} from '../../generated/metricssvc/metricssvc.ts';
import type { FeedDevice, FeedList } from './feed-list.ts';
import type { FeedProtocol } from './feed-socket.ts';
import type { HealthFeed } from './health-feed.ts';

/**
 * The metrics service of an exporter that a device plugin asks for the health of GPUs. The protocol has two words for a device, so an
 * unknown one is unhealthy. Before the first snapshot there is no list: the call fails, and the plugin goes by its own check.
 */
export function metricsService(feed: HealthFeed, families: ReadonlySet<string>): FeedProtocol {
  const answer = (isAsked: (state: GPUState) => boolean, reply: (error: Partial<ServiceError> | null, told?: GPUStateResponse) => void) => {
    const list = feed.latest();
    if (list === undefined) return reply({ code: status.UNAVAILABLE, details: 'The first snapshot is not ready yet.' });
    return reply(null, { GPUState: statesOf(list, families).filter(isAsked) });
  };
  const list: handleUnaryCall<ListRequest, GPUStateResponse> = (_call, reply) => answer(() => true, reply);
  const getGpuState: handleUnaryCall<GPUGetRequest, GPUStateResponse> = ({ request }, reply) =>
    answer(({ ID }) => request.ID.includes(ID), reply);
  return (server) => server.addService(MetricsServiceService, { list, getGpuState });
}

/** One entry for each name that the plugin may use. A card and its first partition have the same name: the worse health counts. */
function statesOf({ devices }: FeedList, families: ReadonlySet<string>): GPUState[] {
  const states = new Map<string, GPUState>();
  for (const one of devices) {
    if (!families.has(one.state.device.family)) continue;
    for (const name of namesOf(one)) if (!states.has(name) || one.health !== 'HEALTHY') states.set(name, stateOf(one, name));
  }
  return [...states.values()];
}

const namesOf = ({ state: { device } }: FeedDevice): readonly string[] =>
  device.parent === undefined ? [device.id, ...device.aliases] : device.aliases;

const stateOf = ({ state: { device }, health }: FeedDevice, name: string): GPUState => ({
  ID: device.id,
  UUID: device.uuid ?? '',
  Health: health === 'HEALTHY' ? 'healthy' : 'unhealthy',
  AssociatedWorkload: [],
  Device: name,
});
