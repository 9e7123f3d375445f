import type { Labels, MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';
import { metricsOf } from '../kit/record-rows.ts';

const { gauge, counter } = familyMetrics('netdev');

const NET = '/sys/class/net/<interface>';
const PCI = '/sys/bus/pci/devices/<address>';

/** Metrics that code fills. */
export const metrics = {
  linkUp: measured(shared.linkUp, `${NET}/carrier of the physical function; 0 for a virtual function whose link-state is disable`),
  linkSpeed: measured(shared.linkSpeed, `${NET}/speed of the physical function`),
  info: gauge(
    'info',
    '1 for each function, with the interface of its first port, its representor on a switch in the adapter, and its RDMA device.',
    ['interface', 'representor', 'rdma_device'],
    `${PCI}/net, ${PCI}/infiniband; ${NET}/phys_port_name`,
  ),
  mtu: gauge('mtu_bytes', 'Largest payload of a frame on the interface.', ['port'], `${NET}/mtu`),
  transmitTimeouts: counter(
    'transmit_timeouts_total',
    'Times the kernel found a transmit queue of the interface stopped for too long.',
    ['port'],
    `${NET}/queues/tx-<number>/tx_timeout, the sum of all queues`,
  ),
  functions: gauge('virtual_functions', 'Virtual functions that the physical function has now.', [], `${PCI}/sriov_numvfs`),
  functionsMax: gauge('max_virtual_functions', 'Virtual functions that the physical function can have.', [], `${PCI}/sriov_totalvfs`),
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Errors have no port: a function with several ports gives their sum. */
export const errors = measured(
  shared.errors,
  `${NET}/statistics: rx_errors, tx_errors, rx_crc_errors, rx_missed_errors; files of the driver`,
);

/** One counter of a function or of its interface, and the series that it feeds. */
export interface CounterRow {
  /** Its file of the drivers, and its name in their texts. */
  readonly name: string;
  readonly metric: MetricSpec;
  /** In addition to `port`, which errors do not have. */
  readonly labels?: Labels;
  /** Its file below the directory of an interface; absent when there is none. */
  readonly file?: string;
  /** Attribute of IFLA_VF_STATS. */
  readonly netlink?: number;
  /** Direction and column in the text of ip. */
  readonly column?: string;
}

const VF = 'IFLA_VF_STATS of the physical function; sriov/<number>/stats of the driver; statistics of the interface while the host has it';
const traffic = (field: string): string => `physical function: ${NET}/statistics/${field}; virtual function: ${VF}`;
const dropped = counter(
  'dropped_packets_total',
  'Packets dropped. A function also drops what the network floods to its port, so this is no fault by itself.',
  ['port', 'direction'],
  traffic('rx_dropped, tx_dropped'),
  { container: true },
);

const counted = (name: string, netlink: number, column: string, metric: MetricSpec, labels?: Labels): CounterRow => ({
  name,
  metric,
  ...(labels && { labels }),
  file: `statistics/${name}`,
  netlink,
  column,
});

/** Counters of every function. Source: Linux include/uapi/linux/if_link.h. */
export const COUNTERS: readonly CounterRow[] = [
  counted('rx_packets', 0, 'RX packets', measured(shared.receivedPackets, traffic('rx_packets'))),
  counted('tx_packets', 1, 'TX packets', measured(shared.transmittedPackets, traffic('tx_packets'))),
  counted('rx_bytes', 2, 'RX bytes', measured(shared.receivedBytes, traffic('rx_bytes'))),
  counted('tx_bytes', 3, 'TX bytes', measured(shared.transmittedBytes, traffic('tx_bytes'))),
  {
    name: 'rx_broadcast',
    metric: counter('received_broadcast_packets_total', 'Broadcast packets received by a virtual function.', ['port'], VF),
    netlink: 4,
    column: 'RX bcast',
  },
  {
    ...counted(
      'rx_multicast',
      5,
      'RX mcast',
      counter('received_multicast_packets_total', 'Multicast packets received.', ['port'], traffic('multicast')),
    ),
    file: 'statistics/multicast',
  },
  counted('rx_dropped', 7, 'RX dropped', dropped, { direction: 'receive' }),
  counted('tx_dropped', 8, 'TX dropped', dropped, { direction: 'transmit' }),
  { name: 'rx_errors', metric: errors, labels: { kind: 'receive' }, file: 'statistics/rx_errors' },
  { name: 'tx_errors', metric: errors, labels: { kind: 'transmit' }, file: 'statistics/tx_errors' },
];

/** Counters of the interface of a port: those above, and these. */
export const PORT_COUNTERS: readonly CounterRow[] = [
  ...COUNTERS,
  { name: 'rx_crc_errors', metric: errors, labels: { kind: 'crc' }, file: 'statistics/rx_crc_errors' },
  { name: 'rx_missed_errors', metric: errors, labels: { kind: 'missed' }, file: 'statistics/rx_missed_errors' },
  {
    name: 'carrier_losses',
    metric: counter(
      'carrier_losses_total',
      'Times the interface lost its link, also because an administrator or a driver took it down.',
      ['port'],
      `${NET}/carrier_down_count`,
    ),
    file: 'carrier_down_count',
  },
];

/** One setting of a virtual function that its physical function tells. */
export interface SettingRow {
  readonly name: 'linkState' | 'spoofCheck' | 'trust' | 'vlan' | 'limit';
  /** Attribute of IFLA_VF_INFO, and the place of the number in it. */
  readonly netlink: number;
  readonly at: number;
  /** A larger number is no setting: the kernel writes -1 when the driver tells none. */
  readonly most: number;
  /** With the word of the setting in the text of ip. */
  readonly text: RegExp;
  readonly metric: MetricSpec;
  /** The words of ip for the numbers from 0. */
  readonly words?: readonly string[];
  /** Factor of the reading; only of a limit. */
  readonly times?: number;
}

/** The link of a function with `auto` follows the port, with `enable` it is always up, and with `disable` always down. */
export const LINK_STATES = ['auto', 'enable', 'disable'];
const SETTING = 'of IFLA_VF_INFO, as ip -d link shows it';
const SWITCH = { most: 1, words: ['off', 'on'] };
export const BYTES_PER_MEGABIT = 125_000;

/** `text`: what stands before the word. */
const setting = (
  name: SettingRow['name'],
  netlink: number,
  text: string,
  metric: MetricSpec,
  more: Pick<SettingRow, 'most'> & Partial<SettingRow>,
): SettingRow => ({ name, netlink, at: 4, text: new RegExp(`(?:^|, )(?:${text}) (\\w+)(?=[,\\s]|$)`), metric, ...more });

export const SETTINGS: readonly SettingRow[] = [
  setting(
    'linkState',
    5,
    'link-state',
    gauge(
      'vf_link_state',
      '1 for the setting of the link of a virtual function: auto follows the port, enable and disable do not.',
      ['state'],
      `IFLA_VF_LINK_STATE ${SETTING}`,
      { wiped: true },
    ),
    { most: 2, words: LINK_STATES },
  ),
  setting(
    'spoofCheck',
    4,
    'spoof checking',
    gauge(
      'vf_spoof_check',
      '1 while the adapter drops packets with a foreign source address of the virtual function, 0 while it does not.',
      [],
      `IFLA_VF_SPOOFCHK ${SETTING}`,
    ),
    SWITCH,
  ),
  setting(
    'trust',
    9,
    'trust',
    gauge(
      'vf_trusted',
      '1 while the virtual function may change its address and receive all packets, 0 while it may not.',
      [],
      `IFLA_VF_TRUST ${SETTING}`,
    ),
    SWITCH,
  ),
  setting(
    'vlan',
    2,
    'vlan',
    gauge('vf_vlan', 'VLAN that the adapter adds to the packets of the virtual function, 0 for none.', [], `IFLA_VF_VLAN ${SETTING}`),
    { most: 4_095 },
  ),
  setting(
    'limit',
    6,
    'max_tx_rate|tx rate',
    gauge(
      'vf_transmit_limit_bytes_per_second',
      'Limit of what the virtual function may transmit. Absent without a limit.',
      [],
      `IFLA_VF_RATE ${SETTING}`,
    ),
    { at: 8, most: 0xffff_ffff, times: BYTES_PER_MEGABIT },
  ),
];

export const allMetrics = [...Object.values(metrics), ...metricsOf([...PORT_COUNTERS, ...SETTINGS])];
