import type { KernelMachine } from './machine.ts';

/** What the kernel says of the one port of a device. */
export interface KernelPort {
  /** By the path below the device's directory. */
  readonly files: Readonly<Record<string, string>>;
  /** As `rdma statistic` shows them. */
  readonly counters: Readonly<Record<string, number>>;
  readonly link: { readonly state: string; readonly physical_state: string; readonly netdev: string };
}

const FILES =
  'node_guid sys_image_guid node_type ports/1/state ports/1/phys_state ports/1/rate ports/1/link_layer ports/1/lid ports/1/sm_lid';

export async function askKernel(machine: KernelMachine, device: string): Promise<KernelPort> {
  const text = await machine.run(`cd /sys/class/infiniband/${device} && grep . ${FILES}`);
  const files = Object.fromEntries([...text.matchAll(/^([^:]+):(.*)$/gm)].map(([, path, value]) => [path as string, value as string]));
  const [link] = JSON.parse(await machine.run(`rdma -j link show ${device}/1`)) as [KernelPort['link']];
  const statistic = await machine.run(`rdma statistic show link ${device}/1`);
  const counters = Object.fromEntries(
    [...statistic.matchAll(/ (\w+) (\d+)(?= |$)/gm)].map(([, name, value]) => [name as string, Number(value)]),
  );
  return { files, counters, link };
}

/** Counters of soft RoCE to the series that the agent makes of them. One of its counters is no error and no traffic, and is left out. */
export const COUNTERS: Readonly<Record<string, readonly [metric: string, labels: Readonly<Record<string, string>>]>> = {
  sent_pkts: ['device_transmitted_packets_total', {}],
  rcvd_pkts: ['device_received_packets_total', {}],
  rdma_sends: ['device_infiniband_transmitted_requests_total', { operation: 'send' }],
  rdma_recvs: ['device_infiniband_received_requests_total', { operation: 'send' }],
  duplicate_request: ['device_errors_total', { kind: 'duplicate_request' }],
  out_of_seq_request: ['device_errors_total', { kind: 'out_of_sequence' }],
  rcvd_rnr_err: ['device_errors_total', { kind: 'rnr_nak_retry' }],
  send_rnr_err: ['device_errors_total', { kind: 'rnr_nak_sent' }],
  rcvd_seq_err: ['device_errors_total', { kind: 'packet_sequence' }],
  retry_exceeded_err: ['device_errors_total', { kind: 'transport_retries_exceeded' }],
  retry_rnr_exceeded_err: ['device_errors_total', { kind: 'rnr_retries_exceeded' }],
  completer_retry_err: ['device_errors_total', { kind: 'completer_retry' }],
  send_err: ['device_errors_total', { kind: 'transmit' }],
  link_downed: ['device_errors_total', { kind: 'link_downed' }],
};
