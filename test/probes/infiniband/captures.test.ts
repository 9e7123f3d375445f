import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Reading } from '../../../src/model/metric.ts';
import { defaultValues } from '../../../src/model/options.ts';
import { family } from '../../../src/probes/infiniband/index.ts';
import { areThere, CAPTURES, skipped } from '../../support/captures.ts';
import { reportOf, valueIn } from './harness.ts';

const SYS = join(CAPTURES, 'sysfs/sys');

/** Taken by hand from the files: device, metric, labels, value. In the files, data counters count words of 4 bytes. */
const FACTS: readonly (readonly [string, string, Readonly<Record<string, string>>, number | bigint | undefined])[] = [
  ['hfi1_0', 'device_link_up', { port: '1' }, 1],
  ['hfi1_0', 'device_link_speed_bytes_per_second', { port: '1' }, 12_500_000_000],
  ['hfi1_0', 'device_infiniband_link_width_lanes', { port: '1' }, 4],
  ['hfi1_0', 'device_infiniband_port_state', { port: '1', state: 'active' }, 1],
  ['hfi1_0', 'device_infiniband_port_state', { port: '1', state: 'down' }, undefined],
  ['hfi1_0', 'device_infiniband_port_physical_state', { port: '1', state: 'link_up' }, 1],
  ['hfi1_0', 'device_received_bytes_total', { port: '1' }, 345_091_702_026 * 4],
  ['hfi1_0', 'device_transmitted_bytes_total', { port: '1' }, 273_558_326_543 * 4],
  ['hfi1_0', 'device_received_packets_total', { port: '1' }, 638_036_947],
  ['hfi1_0', 'device_transmitted_packets_total', { port: '1' }, 568_318_856],
  ['hfi1_0', 'device_infiniband_received_cast_packets_total', { port: '1', cast: 'unicast' }, undefined],
  ['hfi1_0', 'device_infiniband_transmit_wait_total', { port: '1' }, 0],
  ['hfi1_0', 'device_errors_total', { port: '1', kind: 'link_downed' }, 0],
  ['hfi1_0', 'device_errors_total', { port: '1', kind: 'vl15_dropped' }, 0],
  ['hfi1_0', 'device_infiniband_unreadable_files', {}, 0],

  ['mlx4_0', 'device_link_up', { port: '1' }, 1],
  ['mlx4_0', 'device_link_up', { port: '2' }, 1],
  ['mlx4_0', 'device_link_speed_bytes_per_second', { port: '1' }, 5_000_000_000],
  ['mlx4_0', 'device_link_speed_bytes_per_second', { port: '2' }, 5_000_000_000],
  ['mlx4_0', 'device_received_bytes_total', { port: '1' }, 2_221_223_609 * 4],
  ['mlx4_0', 'device_transmitted_bytes_total', { port: '1' }, 26_509_113_295 * 4],
  ['mlx4_0', 'device_received_packets_total', { port: '1' }, 87_169_372],
  ['mlx4_0', 'device_transmitted_packets_total', { port: '1' }, 85_734_114],
  ['mlx4_0', 'device_infiniband_transmit_wait_total', { port: '1' }, 3_599],
  ['mlx4_0', 'device_received_bytes_total', { port: '2' }, 2_460_436_784 * 4],
  ['mlx4_0', 'device_transmitted_bytes_total', { port: '2' }, 26_540_356_890 * 4],
  ['mlx4_0', 'device_received_packets_total', { port: '2' }, 89_332_064],
  ['mlx4_0', 'device_transmitted_packets_total', { port: '2' }, 88_622_850],
  ['mlx4_0', 'device_infiniband_transmit_wait_total', { port: '2' }, 3_846],
  ['mlx4_0', 'device_infiniband_port_info', { port: '2', link_layer: 'InfiniBand', rate: '4X QDR' }, 1],
  ['mlx4_0', 'device_infiniband_saturated', {}, undefined],

  ['mlx5_0', 'device_link_up', { port: '1' }, 1],
  ['mlx5_0', 'device_link_speed_bytes_per_second', { port: '1' }, 3_125_000_000],
  ['mlx5_0', 'device_infiniband_link_width_lanes', { port: '1' }, 1],
  ['mlx5_0', 'device_infiniband_port_physical_state', { port: '1', state: 'training' }, undefined],
  ['mlx5_0', 'device_received_bytes_total', { port: '1' }, 18_126_345_378 * 4],
  ['mlx5_0', 'device_transmitted_bytes_total', { port: '1' }, 2_880_761_508_848 * 4],
  ['mlx5_0', 'device_received_packets_total', { port: '1' }, 541_889_824],
  ['mlx5_0', 'device_transmitted_packets_total', { port: '1' }, 10_907_922_116],
  ['mlx5_0', 'device_infiniband_received_cast_packets_total', { port: '1', cast: 'unicast' }, 541_889_824],
  ['mlx5_0', 'device_infiniband_received_cast_packets_total', { port: '1', cast: 'multicast' }, 0],
  ['mlx5_0', 'device_infiniband_transmitted_cast_packets_total', { port: '1', cast: 'unicast' }, 10_907_922_116],
  ['mlx5_0', 'device_infiniband_hw_cache_lifespan_seconds', { port: '1' }, 0.01],
  ['mlx5_0', 'device_infiniband_received_requests_total', { port: '1', operation: 'write' }, 742_114],
  ['mlx5_0', 'device_infiniband_received_requests_total', { port: '1', operation: 'read' }, 175_528_982],
  ['mlx5_0', 'device_infiniband_received_requests_total', { port: '1', operation: 'atomic' }, 0],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'duplicate_request' }, 41],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'local_ack_timeout' }, 131],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'request_completion' }, 3_481],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'response_completion' }, 8_109],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'out_of_sequence' }, 1],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'packet_sequence' }, 1],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'out_of_buffer' }, 0],
  ['mlx5_0', 'device_errors_total', { port: '1', kind: 'icrc' }, undefined],
  ['mlx5_0', 'device_infiniband_flushed_completions_total', { port: '1', side: 'requester' }, 80],
  ['mlx5_0', 'device_infiniband_flushed_completions_total', { port: '1', side: 'responder' }, 4_708],
  ['mlx5_0', 'device_infiniband_roce_recovery_events_total', { port: '1', event: 'adaptive_retransmission' }, 99],
  ['mlx5_0', 'device_infiniband_roce_recovery_events_total', { port: '1', event: 'adaptive_retransmission_timeout' }, 4],
  ['mlx5_0', 'device_infiniband_roce_recovery_events_total', { port: '1', event: 'slow_restart_notification' }, 131],
  ['mlx5_0', 'device_infiniband_congestion_notifications_total', {}, undefined],
];

/** Number of counter series of each device, which equals the number of its counter files. */
const SERIES: readonly (readonly [string, number])[] = [
  ['hfi1_0', 17],
  ['mlx4_0', 34],
  ['mlx5_0', 21 + 25],
];

function collectCapture(): Collection {
  const host = createHost({ sysfs: SYS, procfs: '/proc', dev: '/nonexistent', kmsg: '' }, systemClock);
  return family.createProbe(host, defaultValues(family.options)).collect() as Collection;
}

describe.skipIf(!areThere)(`captured RDMA devices${skipped}`, () => {
  it('are three, identified by the content of their files', () => {
    const collection = collectCapture();
    expect(collection.problems).toEqual([]);
    expect(collection.reports.map(({ device }) => [device.id, device.model, device.firmware, device.uuid])).toEqual([
      ['hfi1_0', undefined, '1.27.0', undefined],
      ['mlx4_0', 'MT4099', '2.31.5050', undefined],
      ['mlx5_0', 'MT4118', '14.28.2006', '0a7f:bc12:45ef:d23b'],
    ]);
    const boards = collection.reports.map(
      (report) => [...(report.read?.readings ?? [])].find(({ metric }) => metric === 'device_infiniband_info')?.labels?.board_id,
    );
    expect(boards).toEqual([
      'HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter',
      'SM_1141000001000',
      'SM_2001000001034',
    ]);
  });

  it.each(FACTS)('%s has %s %j = %s', (device, metric, labels, value) => {
    const report = reportOf(collectCapture(), device);
    if (value === undefined) expect(report.readings.filter((reading) => matches(reading, metric, labels))).toEqual([]);
    else expect(valueIn(report, metric, labels)).toBe(value);
  });

  it.each(SERIES)('%s gives one series for each of its %d counter files', (device, count) => {
    const report = reportOf(collectCapture(), device);
    const levels = /^device_(?:link_|infiniband_(?:info|port_|link_|unreadable|unmapped))/;
    expect(report.readings.filter(({ metric }) => !levels.test(metric))).toHaveLength(count);
  });
});

function matches(reading: Reading, metric: string, labels: Readonly<Record<string, string>>): boolean {
  return reading.metric === metric && Object.entries(labels).every(([key, value]) => reading.labels?.[key] === value);
}
