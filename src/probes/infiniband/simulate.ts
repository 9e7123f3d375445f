import type { Scenario, SimulatedHardware, SimulatedUse } from '../../model/simulated.ts';

/** Kubelet resources of the simulated devices. */
const VF_RESOURCE = 'openshift.io/ib_vf';
const PF_RESOURCE = 'nvidia.com/ib_pf';
/** The pool has the ids "0", "1", …. Only a configured rule can map such a pool to devices. */
const SHARED_RESOURCE = 'rdma/hca_shared';
const SHARED_IDS = 64;

interface SimulatedFunction {
  /** Number of `mlx5_<n>` and of its character devices. */
  readonly index: number;
  /** Number of the physical function. */
  readonly card: number;
  /** Number among the virtual functions of the card; absent for the physical function. */
  readonly vf?: number;
  readonly address: string;
  /** Path of its directory below the node's root. */
  readonly directory: string;
  readonly isFlapping: boolean;
}

/** Simulates ConnectX-7 cards at 400 Gb/s with the same number of virtual functions. The last card loses its link every three minutes. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const functions = layOut(scenario);
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (const fn of functions) {
    addPciFunction(fn, functions, files, links);
    addRdmaDevice(fn, scenario, files, links);
  }
  if (functions.length > 0) files['dev/infiniband/rdma_cm'] = '';
  return { files, links, resources: resourcesOf(functions) };
}

function layOut({ hcas, vfs }: Scenario): readonly SimulatedFunction[] {
  const functions: SimulatedFunction[] = [];
  const add = (card: number, vf?: number): void => {
    const address = addressOf(card, vf === undefined ? 0 : vf + 1);
    functions.push({
      index: functions.length,
      card,
      address,
      directory: `${rootPort(card)}/${address}`,
      isFlapping: card === hcas - 1,
      ...(vf !== undefined && { vf }),
    });
  };
  for (let card = 0; card < hcas; card += 1) add(card);
  if (hcas > 0) for (let vf = 0; vf < vfs; vf += 1) add(vf % hcas, Math.floor(vf / hcas));
  return functions;
}

const CARDS_PER_DOMAIN = 14;
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
const domainOf = (card: number): string => hex(Math.floor(card / CARDS_PER_DOMAIN), 4);
const busOf = (card: number): number => 0x10 + (card % CARDS_PER_DOMAIN) * 0x10;

/** Returns the address of a routing id on the buses behind the physical function: 8 functions a device, 32 devices a bus. */
function addressOf(card: number, routing: number): string {
  const bus = busOf(card) + (routing >> 8);
  return `${domainOf(card)}:${hex(bus, 2)}:${hex((routing >> 3) & 0x1f, 2)}.${routing & 7}`;
}

function rootPort(card: number): string {
  const domain = domainOf(card);
  const bus = hex(busOf(card) - 1, 2);
  return `sys/devices/pci${domain}:${bus}/${domain}:${bus}:01.0`;
}

function addPciFunction(
  fn: SimulatedFunction,
  all: readonly SimulatedFunction[],
  files: Record<string, string>,
  links: Record<string, string>,
): void {
  const { directory, address, card } = fn;
  files[`${directory}/vendor`] = '0x15b3\n';
  files[`${directory}/device`] = fn.vf === undefined ? '0x1021\n' : '0x101e\n';
  files[`${directory}/class`] = '0x020700\n';
  files[`${directory}/numa_node`] = `${card % 2}\n`;
  files[`${directory}/power_state`] = 'D0\n';
  links[`sys/bus/pci/devices/${address}`] = `../../../${directory.slice('sys/'.length)}`;
  links[`${directory}/driver`] = '../../../../bus/pci/drivers/mlx5_core';
  if (fn.vf === undefined) addLink(fn, all, files, links);
  else links[`${directory}/physfn`] = `../${addressOf(card, 0)}`;
}

const LINK_FILES = { link_speed: '32.0 GT/s PCIe\n', link_width: '16\n' };

const AER_FILES = {
  aer_dev_correctable: 'RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 0\n',
  aer_dev_nonfatal: 'Undefined 0\nDLP 0\nTLP 0\nCmpltTO 0\nUnxCmplt 0\nMalfTLP 0\nUnsupReq 0\nTOTAL_ERR_NONFATAL 0\n',
  aer_dev_fatal: 'Undefined 0\nDLP 0\nTLP 0\nCmpltTO 0\nUnxCmplt 0\nMalfTLP 0\nUnsupReq 0\nTOTAL_ERR_FATAL 0\n',
};

function addLink(
  fn: SimulatedFunction,
  all: readonly SimulatedFunction[],
  files: Record<string, string>,
  links: Record<string, string>,
): void {
  const own = all.filter((other) => other.card === fn.card && other.vf !== undefined);
  for (const other of own) links[`${fn.directory}/virtfn${other.vf}`] = `../${other.address}`;
  files[`${fn.directory}/sriov_numvfs`] = `${own.length}\n`;
  for (const [file, text] of Object.entries(LINK_FILES)) {
    files[`${fn.directory}/current_${file}`] = text;
    files[`${fn.directory}/max_${file}`] = text;
    files[`${rootPort(fn.card)}/max_${file}`] = text;
  }
  for (const [file, text] of Object.entries(AER_FILES)) files[`${fn.directory}/${file}`] = text;
}

function addRdmaDevice(
  fn: SimulatedFunction,
  { elapsedMs, use }: Scenario,
  files: Record<string, string>,
  links: Record<string, string>,
): void {
  const name = `mlx5_${fn.index}`;
  const device = `${fn.directory}/infiniband/${name}`;
  links[`sys/class/infiniband/${name}`] = `../../${device.slice('sys/'.length)}`;
  links[`${device}/device`] = '../..';
  files[`${device}/fw_ver`] = '28.41.1000\n';
  files[`${device}/hca_type`] = 'MT4129\n';
  files[`${device}/board_id`] = 'MT_0000000838\n';
  files[`${device}/hw_rev`] = '0\n';
  files[`${device}/node_type`] = '1: CA\n';
  files[`${device}/node_guid`] = `${guid(fn.card, fn.vf === undefined ? 0 : fn.vf + 1)}\n`;
  files[`${device}/sys_image_guid`] = `${guid(fn.card, 0)}\n`;
  addCharDevices(fn, name, files, links);
  // The pool of the last card is always in use, so its traffic depends only on its link.
  const upTime = fn.isFlapping ? upTimeMs(elapsedMs) : { upMs: elapsedMs, isUp: true, losses: 0 };
  const trafficMs = use === undefined || fn.isFlapping ? upTime.upMs : trafficTimeMs(elapsedMs, use[fn.address]);
  for (const [file, text] of simulatedPort(fn.index, fn.card, { ...upTime, trafficMs })) files[`${device}/ports/1/${file}`] = text;
}

function guid(card: number, fn: number): string {
  return `a088:c203:00${hex(card & 0xff, 2)}:${hex(fn, 4)}`;
}

/** Regular files replace the character devices, because no program may open those of a real node. */
function addCharDevices(fn: SimulatedFunction, name: string, files: Record<string, string>, links: Record<string, string>): void {
  for (const [kind, classDirectory] of [
    ['uverbs', 'infiniband_verbs'],
    ['umad', 'infiniband_mad'],
    ['issm', 'infiniband_mad'],
  ] as const) {
    const node = `${kind}${fn.index}`;
    const directory = `${fn.directory}/${classDirectory}/${node}`;
    links[`sys/class/${classDirectory}/${node}`] = `../../${directory.slice('sys/'.length)}`;
    files[`${directory}/ibdev`] = `${name}\n`;
    if (kind !== 'uverbs') files[`${directory}/port`] = '1\n';
    files[`dev/infiniband/${node}`] = '';
  }
}

function resourcesOf(functions: readonly SimulatedFunction[]): SimulatedHardware['resources'] {
  const entry = (resource: string, of: readonly SimulatedFunction[]): SimulatedHardware['resources'] =>
    of.length === 0 ? [] : [{ resource, deviceIds: of.map(({ address }) => address), numaNodes: of.map(({ card }) => card % 2) }];
  if (functions.length === 0) return [];
  return [
    ...entry(
      VF_RESOURCE,
      functions.filter(({ vf }) => vf !== undefined),
    ),
    ...entry(
      PF_RESOURCE,
      functions.filter(({ vf }) => vf === undefined),
    ),
    { resource: SHARED_RESOURCE, deviceIds: Array.from({ length: SHARED_IDS }, (_, id) => String(id)) },
  ];
}

/** Time that a port was up since the start, its current state, and the number of link losses. */
interface UpTime {
  readonly upMs: number;
  readonly isUp: boolean;
  readonly losses: number;
}

/** `trafficMs`: time of full traffic that gives the counters. */
type PortTime = Omit<UpTime, 'upMs'> & { readonly trafficMs: number };

const CYCLE_MS = 180_000;
const DOWN_FROM_MS = 90_000;
const DOWN_UNTIL_MS = 130_000;

/** The flapping port is down from second 90 to second 130 of every three minutes. */
export function upTimeMs(elapsedMs: number): UpTime {
  const cycles = Math.floor(elapsedMs / CYCLE_MS);
  const within = elapsedMs - cycles * CYCLE_MS;
  const downMs = Math.min(Math.max(within - DOWN_FROM_MS, 0), DOWN_UNTIL_MS - DOWN_FROM_MS);
  return {
    upMs: elapsedMs - cycles * (DOWN_UNTIL_MS - DOWN_FROM_MS) - downMs,
    isUp: within < DOWN_FROM_MS || within >= DOWN_UNTIL_MS,
    losses: cycles + (within >= DOWN_FROM_MS ? 1 : 0),
  };
}

/** Growth per second of the traffic counters of the first card. Each further card has a little less traffic. */
const TRAFFIC: Readonly<Record<string, number>> = {
  'counters/port_rcv_data': 4_100_000_000,
  'counters/port_xmit_data': 3_900_000_000,
  'counters/port_rcv_packets': 4_000_000,
  'counters/port_xmit_packets': 3_800_000,
  'counters/unicast_rcv_packets': 3_999_000,
  'counters/unicast_xmit_packets': 3_799_500,
  'counters/multicast_rcv_packets': 1_000,
  'counters/multicast_xmit_packets': 500,
  'counters/port_xmit_wait': 1_200,
  'hw_counters/rx_write_requests': 900_000,
  'hw_counters/rx_read_requests': 2_000,
  'hw_counters/rx_atomic_requests': 40,
  'hw_counters/np_cnp_sent': 3,
  'hw_counters/rp_cnp_handled': 2,
  'hw_counters/np_ecn_marked_roce_packets': 4,
};

const CONSTANT: readonly string[] = [
  ...[
    'symbol_error',
    'link_error_recovery',
    'port_rcv_errors',
    'port_rcv_remote_physical_errors',
    'port_rcv_switch_relay_errors',
    'port_xmit_discards',
    'port_xmit_constraint_errors',
    'port_rcv_constraint_errors',
    'local_link_integrity_errors',
    'excessive_buffer_overrun_errors',
    'VL15_dropped',
  ].map((file) => `counters/${file}`),
  ...[
    'rx_dct_connect',
    'out_of_buffer',
    'out_of_sequence',
    'duplicate_request',
    'rnr_nak_retry_err',
    'packet_seq_err',
    'implied_nak_seq_err',
    'local_ack_timeout_err',
    'resp_local_length_error',
    'resp_cqe_error',
    'req_cqe_error',
    'req_remote_invalid_request',
    'req_remote_access_errors',
    'resp_remote_access_errors',
    'resp_cqe_flush_error',
    'req_cqe_flush_error',
    'req_transport_retries_exceeded',
    'req_rnr_retries_exceeded',
    'roce_adp_retrans',
    'roce_adp_retrans_to',
    'roce_slow_restart',
    'roce_slow_restart_cnps',
    'roce_slow_restart_trans',
    'rp_cnp_ignored',
    'rx_icrc_encapsulated',
  ].map((file) => `hw_counters/${file}`),
];

/** The node itself causes this share of the traffic of a working card, for example for subnet management. */
const BACKGROUND = 1e-7;

/** Time of full traffic that moves as much data as a card without use until now, and with its use. */
function trafficTimeMs(elapsedMs: number, { activeMs }: SimulatedUse = { activeMs: 0 }): number {
  return elapsedMs * BACKGROUND + activeMs;
}

/** 32-bit firmware counters restart at 0 after their largest value. */
const WRAP = 2n ** 32n;

/** Returns path (below the port's directory) and content of the files of one port. `fn` sets the LID, `card` the share of traffic. */
function simulatedPort(fn: number, card: number, { trafficMs, isUp, losses }: PortTime): [string, string][] {
  const share = 1000 - 7 * (card % 100) - 3 * (fn % 30);
  const counters = Object.entries(TRAFFIC).map(([file, perSecond]): [string, string] => {
    const value = (BigInt(perSecond) * BigInt(share) * BigInt(Math.floor(1_000 * trafficMs))) / 1_000_000_000n;
    return [file, `${file.startsWith('hw_counters/rx_') ? value % WRAP : value}\n`];
  });
  return [
    ['state', isUp ? '4: ACTIVE\n' : '1: DOWN\n'],
    ['phys_state', isUp ? '5: LinkUp\n' : '2: Polling\n'],
    ['rate', isUp ? '400 Gb/sec (4X NDR)\n' : '10 Gb/sec (4X SDR)\n'],
    ['link_layer', 'InfiniBand\n'],
    ['lid', `0x${(fn + 1).toString(16)}\n`],
    ['sm_lid', '0x1\n'],
    ['lid_mask_count', '0\n'],
    ['sm_sl', '0\n'],
    ['cap_mask', '0xa751e848\n'],
    ['counters/link_downed', `${Math.min(losses, 255)}\n`],
    ['hw_counters/lifespan', '10\n'],
    ...counters,
    ...CONSTANT.map((file): [string, string] => [file, '0\n']),
  ];
}
