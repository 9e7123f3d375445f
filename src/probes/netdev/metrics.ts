import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';

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
  dropped: {
    name: 'device_netdev_dropped_packets_total',
    type: 'counter',
    help: 'Packets dropped. A function also drops what the network floods to its port, so this is no fault by itself.',
    labels: ['port', 'direction'],
    source: traffic('rx_dropped, tx_dropped'),
    container: true,
  },
  receivedMulticast: {
    name: 'device_netdev_received_multicast_packets_total',
    type: 'counter',
    help: 'Multicast packets received.',
    labels: ['port'],
    source: traffic('multicast'),
  },
  receivedBroadcast: {
    name: 'device_netdev_received_broadcast_packets_total',
    type: 'counter',
    help: 'Broadcast packets received by a virtual function.',
    labels: ['port'],
    source: VF,
  },
  info: {
    name: 'device_netdev_info',
    type: 'gauge',
    help: '1 for each function, with the interface of its first port, its representor on a switch in the adapter, and its RDMA device.',
    labels: ['interface', 'representor', 'rdma_device'],
    source: `${PCI}/net, ${PCI}/infiniband; ${NET}/phys_port_name`,
  },
  mtu: {
    name: 'device_netdev_mtu_bytes',
    type: 'gauge',
    help: 'Largest payload of a frame on the interface.',
    labels: ['port'],
    source: `${NET}/mtu`,
  },
  carrierLosses: {
    name: 'device_netdev_carrier_losses_total',
    type: 'counter',
    help: 'Times the interface lost its link, also because an administrator or a driver took it down.',
    labels: ['port'],
    source: `${NET}/carrier_down_count`,
  },
  transmitTimeouts: {
    name: 'device_netdev_transmit_timeouts_total',
    type: 'counter',
    help: 'Times the kernel found a transmit queue of the interface stopped for too long.',
    labels: ['port'],
    source: `${NET}/queues/tx-<number>/tx_timeout, the sum of all queues`,
  },
  functions: {
    name: 'device_netdev_virtual_functions',
    type: 'gauge',
    help: 'Virtual functions that the physical function has now.',
    labels: [],
    source: `${PCI}/sriov_numvfs`,
  },
  functionsMax: {
    name: 'device_netdev_max_virtual_functions',
    type: 'gauge',
    help: 'Virtual functions that the physical function can have.',
    labels: [],
    source: `${PCI}/sriov_totalvfs`,
  },
  linkState: {
    name: 'device_netdev_vf_link_state',
    type: 'gauge',
    help: '1 for the setting of the link of a virtual function: auto follows the port, enable and disable do not.',
    labels: ['state'],
    source: `IFLA_VF_LINK_STATE ${SETTING}`,
  },
  spoofCheck: {
    name: 'device_netdev_vf_spoof_check',
    type: 'gauge',
    help: '1 while the adapter drops packets with a foreign source address of the virtual function, 0 while it does not.',
    labels: [],
    source: `IFLA_VF_SPOOFCHK ${SETTING}`,
  },
  trusted: {
    name: 'device_netdev_vf_trusted',
    type: 'gauge',
    help: '1 while the virtual function may change its address and receive all packets, 0 while it may not.',
    labels: [],
    source: `IFLA_VF_TRUST ${SETTING}`,
  },
  vlan: {
    name: 'device_netdev_vf_vlan',
    type: 'gauge',
    help: 'VLAN that the adapter adds to the packets of the virtual function, 0 for none.',
    labels: [],
    source: `IFLA_VF_VLAN ${SETTING}`,
  },
  transmitLimit: {
    name: 'device_netdev_vf_transmit_limit_bytes_per_second',
    type: 'gauge',
    help: 'Limit of what the virtual function may transmit. Absent without a limit.',
    labels: [],
    source: `IFLA_VF_RATE ${SETTING}`,
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;
