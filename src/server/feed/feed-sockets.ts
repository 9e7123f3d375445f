import type { ServerWritableStream } from '@grpc/grpc-js';
import { type handleUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import {
  type DeviceHealthResponse,
  DeviceInfoService,
  type DeviceHealth as GpuHealth,
  SeverityLevel,
} from '../../generated/deviceinfo/v1alpha1/deviceinfo.ts';
import {
  type DeviceHealth,
  DRAResourceHealthService,
  HealthStatus,
  type NodeWatchResourcesResponse,
} from '../../generated/drahealth/v1/api.ts';
import { DRAResourceHealthService as AlphaService } from '../../generated/drahealth/v1alpha1/api.ts';
import {
  type GPUGetRequest,
  type GPUState,
  type GPUStateResponse,
  type ListRequest,
  MetricsServiceService,
} from '../../generated/metricssvc/metricssvc.ts';
import { type HealthCheckRequest, type HealthCheckResponse, HealthCheckServiceService } from '../../generated/nvhcd/nvhcd.ts';
import { type ReadyRules, readyDevices } from '../../health/journal/ready-devices.ts';
import { ofMetric } from '../../model/readings.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import type { HealthFeedOptions } from '../options.ts';
import type { SocketServer } from '../sockets.ts';
import type { FeedDevice, FeedHealth, FeedList } from './feed-list.ts';
import { createFeedServer, type FeedProtocol, streamLists } from './feed-socket.ts';
import { type HealthFeed, TIMEOUT_MS } from './health-feed.ts';

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

interface NodeCheckDependencies {
  snapshot(): Snapshot | undefined;
  /** Returns why the agent does not work; undefined while it does. */
  fault(): string | undefined;
  readonly rules: ReadyRules;
}

/**
 * The health check of a node that a launcher of training jobs asks. It says the same as `/-/ready/devices`. The protocol has two words, so
 * what is not known fails the check. A failed call would pass it: the launcher then goes on without.
 */
export function nodeCheck({ snapshot, fault, rules }: NodeCheckDependencies): FeedProtocol {
  const failures = (): readonly string[] => {
    const latest = snapshot();
    if (latest === undefined) return ['The first snapshot is not ready yet.'];
    const problem = fault();
    if (problem !== undefined) return [problem];
    const { isReady, lines } = readyDevices(latest, {}, rules);
    return isReady ? [] : lines;
  };
  const runHealthCheck: handleUnaryCall<HealthCheckRequest, HealthCheckResponse> = (_call, reply) => reply(null, responseOf(failures()));
  return (server) => server.addService(HealthCheckServiceService, { runHealthCheck });
}

const responseOf = (failures: readonly string[]): HealthCheckResponse => ({
  success: failures.length === 0,
  exitCode: failures.length === 0 ? 0 : 1,
  output: JSON.stringify({ fail_count: failures.length, failed_checks: failures }),
  error: '',
});

/**
 * The clients take the protocol's own word for unknown as healthy, and one of them also a warning. A degraded device stays in service, as
 * everywhere in the feed.
 */
const SEVERITY_OF: Readonly<Record<FeedHealth, SeverityLevel>> = {
  HEALTHY: SeverityLevel.SEVERITY_LEVEL_OK,
  UNHEALTHY: SeverityLevel.SEVERITY_LEVEL_CRITICAL,
  UNKNOWN: SeverityLevel.SEVERITY_LEVEL_CRITICAL,
};

/** The stream of a GPU daemon that a device plugin and a DRA driver follow. */
export function deviceInfo(feed: HealthFeed, families: ReadonlySet<string>): FeedProtocol {
  return (server, connection) => {
    const watchDeviceHealth = (call: ServerWritableStream<object, DeviceHealthResponse>): void =>
      streamLists(call, feed, connection, ({ devices }) => ({
        devices: devices.filter(({ state: { device } }) => families.has(device.family) && device.pciAddress !== undefined).map(gpuHealthOf),
      }));
    server.addService(DeviceInfoService, { watchDeviceHealth });
  };
}

function gpuHealthOf({ state, health, message }: FeedDevice): GpuHealth {
  const { uuid, model, pciAddress, pciDevice, pciVendor } = state.device;
  return {
    info: {
      uuid: uuid ?? '',
      model: model ?? '',
      pci: { bdf: pciAddress ?? '', deviceId: pciDevice ?? '', vendorId: pciVendor ?? '' },
      memory: memoryOf(state),
    },
    health: [{ name: 'device', severity: SEVERITY_OF[health], reason: health.toLowerCase(), message }],
  };
}

/** Empty when the driver does not report the size. */
const memoryOf = ({ readings }: DeviceState): { type: string; subdeviceId: string; size: bigint }[] =>
  ofMetric(readings, shared.memoryTotal.name).map(({ value }) => ({ type: '', subdeviceId: '', size: BigInt(Math.trunc(Number(value))) }));
