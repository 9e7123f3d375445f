import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';

const { gauge, counter } = familyMetrics('netdev');

const NET = '/sys/class/net/<interface>';
const PCI = '/sys/bus/pci/devices/<address>';
const VF = 'IFLA_VF_STATS of the physical function; sriov/<number>/stats of the driver; statistics of the interface while the host has it';
const SETTING = 'of IFLA_VF_INFO, as ip -d link shows it';

const traffic = (field: string): string => `physical function: ${NET}/statistics/${field}; virtual function: ${VF}`;

export const metrics = {
  linkUp: measured(shared.linkUp, `${NET}/carrier of the physical function; 0 for a virtual function whose link-state is disable`),
  linkSpeed: measured(shared.linkSpeed, `${NET}/speed of the physical function`),
  receivedBytes: measured(shared.receivedBytes, traffic('rx_bytes')),
  transmittedBytes: measured(shared.transmittedBytes, traffic('tx_bytes')),
  receivedPackets: measured(shared.receivedPackets, traffic('rx_packets')),
  transmittedPackets: measured(shared.transmittedPackets, traffic('tx_packets')),
  errors: measured(shared.errors, `${NET}/statistics: rx_errors, tx_errors, rx_crc_errors, rx_missed_errors; files of the driver`),
  dropped: counter(
    'dropped_packets_total',
    'Packets dropped. A function also drops what the network floods to its port, so this is no fault by itself.',
    ['port', 'direction'],
    traffic('rx_dropped, tx_dropped'),
    { container: true },
  ),
  receivedMulticast: counter('received_multicast_packets_total', 'Multicast packets received.', ['port'], traffic('multicast')),
  receivedBroadcast: counter('received_broadcast_packets_total', 'Broadcast packets received by a virtual function.', ['port'], VF),
  info: gauge(
    'info',
    '1 for each function, with the interface of its first port, its representor on a switch in the adapter, and its RDMA device.',
    ['interface', 'representor', 'rdma_device'],
    `${PCI}/net, ${PCI}/infiniband; ${NET}/phys_port_name`,
  ),
  mtu: gauge('mtu_bytes', 'Largest payload of a frame on the interface.', ['port'], `${NET}/mtu`),
  carrierLosses: counter(
    'carrier_losses_total',
    'Times the interface lost its link, also because an administrator or a driver took it down.',
    ['port'],
    `${NET}/carrier_down_count`,
  ),
  transmitTimeouts: counter(
    'transmit_timeouts_total',
    'Times the kernel found a transmit queue of the interface stopped for too long.',
    ['port'],
    `${NET}/queues/tx-<number>/tx_timeout, the sum of all queues`,
  ),
  functions: gauge('virtual_functions', 'Virtual functions that the physical function has now.', [], `${PCI}/sriov_numvfs`),
  functionsMax: gauge('max_virtual_functions', 'Virtual functions that the physical function can have.', [], `${PCI}/sriov_totalvfs`),
  linkState: gauge(
    'vf_link_state',
    '1 for the setting of the link of a virtual function: auto follows the port, enable and disable do not.',
    ['state'],
    `IFLA_VF_LINK_STATE ${SETTING}`,
    { wiped: true },
  ),
  spoofCheck: gauge(
    'vf_spoof_check',
    '1 while the adapter drops packets with a foreign source address of the virtual function, 0 while it does not.',
    [],
    `IFLA_VF_SPOOFCHK ${SETTING}`,
  ),
  trusted: gauge(
    'vf_trusted',
    '1 while the virtual function may change its address and receive all packets, 0 while it may not.',
    [],
    `IFLA_VF_TRUST ${SETTING}`,
  ),
  vlan: gauge('vf_vlan', 'VLAN that the adapter adds to the packets of the virtual function, 0 for none.', [], `IFLA_VF_VLAN ${SETTING}`),
  transmitLimit: gauge(
    'vf_transmit_limit_bytes_per_second',
    'Limit of what the virtual function may transmit. Absent without a limit.',
    [],
    `IFLA_VF_RATE ${SETTING}`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;
