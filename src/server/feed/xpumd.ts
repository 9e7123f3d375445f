import type { ServerWritableStream } from '@grpc/grpc-js';
import {
  type DeviceHealth,
  type DeviceHealthResponse,
  DeviceInfoService,
  SeverityLevel,
} from '../../generated/deviceinfo/v1alpha1/deviceinfo.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import type { FeedDevice, FeedHealth } from './feed-list.ts';
import { type FeedProtocol, streamLists } from './feed-socket.ts';
import type { HealthFeed } from './health-feed.ts';

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
        devices: devices.filter(({ state: { device } }) => families.has(device.family) && device.pciAddress !== undefined).map(healthOf),
      }));
    server.addService(DeviceInfoService, { watchDeviceHealth });
  };
}

function healthOf({ state, health, message }: FeedDevice): DeviceHealth {
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

/** Empty when the driver does not tell the size. */
const memoryOf = ({ readings }: DeviceState): { type: string; subdeviceId: string; size: bigint }[] =>
  readings
    .filter(({ metric }) => metric === shared.memoryTotal.name)
    .map(({ value }) => ({ type: '', subdeviceId: '', size: BigInt(Math.trunc(Number(value))) }));
