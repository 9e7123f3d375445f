import type { Scenario, SimulatedHardware, SimulatedResource } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';
import { type PortPast, portFiles, trafficTimeMs } from './port.ts';

/** Kubelet resources of the simulated devices. The agent's own plugin serves the virtual functions. */
const VF_RESOURCE = 'device-agent.dev/vf';
const PF_RESOURCE = 'nvidia.com/ib_pf';
/** A pool with the ids "0", "1", …, which a rule maps to the last card. No other resource has this card. */
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
  /** The pool offers it, so it is always in use. */
  readonly isPooled: boolean;
}

/** Simulates ConnectX-7 cards at 400 Gb/s with the same number of virtual functions. */
export function simulate(scenario: Scenario): SimulatedHardware {
  const functions = layOut(scenario);
  const files: Record<string, string> = {};
  const links: Record<string, string> = {};
  for (const fn of functions) {
    addPciFunction(fn, functions, files, links);
    addRdmaDevice(fn, scenario, files, links);
  }
  if (functions.length > 0) files['dev/infiniband/rdma_cm'] = '';
  const targets = functions
    .filter(({ vf }) => vf === undefined)
    .map(({ index, address }) => ({ id: `mlx5_${index}`, kind: 'pf', names: [address] }));
  const stoppedIds = functions.filter(({ card }) => pastOf(scenario, 'port-down', `mlx5_${card}`).isOn).map(({ address }) => address);
  return {
    files,
    links,
    ...kubeletOf(functions),
    ...(stoppedIds.length > 0 && { stoppedIds }),
    ...(targets.length > 0 && { targets }),
  };
}

function layOut({ counts }: Scenario): readonly SimulatedFunction[] {
  const { infiniband: hcas = 0, 'infiniband.vf': vfs = 0 } = counts;
  const functions: SimulatedFunction[] = [];
  const add = (card: number, vf?: number): void => {
    const address = addressOf(card, vf === undefined ? 0 : vf + 1);
    functions.push({
      index: functions.length,
      card,
      address,
      directory: `${rootPort(card)}/${address}`,
      isPooled: card === hcas - 1 && vf === undefined,
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

function addRdmaDevice(fn: SimulatedFunction, scenario: Scenario, files: Record<string, string>, links: Record<string, string>): void {
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
  for (const [file, text] of portFiles(fn.index, fn.card, portPast(fn, scenario))) files[`${device}/ports/1/${file}`] = text;
  if (!pastOf(scenario, 'unreadable', name).isOn) return;
  // A read of this file fails with EIO, like a query of a firmware that hangs.
  for (const path of ['state', 'phys_state'].map((file) => `${device}/ports/1/${file}`)) {
    delete files[path];
    links[path] = '/proc/self/mem';
  }
}

/** A virtual function has the link and the errors of its card. */
function portPast(fn: SimulatedFunction, scenario: Scenario): PortPast {
  const { elapsedMs, use } = scenario;
  const card = `mlx5_${fn.card}`;
  const down = pastOf(scenario, 'port-down', card);
  const errors = pastOf(scenario, 'errors', card);
  const { totalMs: silentMs } = pastOf(scenario, 'silent', card);
  const { activeMs = 0 } = use?.[fn.address] ?? {};
  const isAlwaysBusy = use === undefined || fn.isPooled;
  return {
    isUp: !down.isOn,
    losses: fn.vf === undefined ? down.times : 0,
    errorsMs: fn.vf === undefined ? errors.totalMs : 0,
    trafficMs: isAlwaysBusy
      ? elapsedMs - down.totalMs - silentMs
      : trafficTimeMs(elapsedMs - down.totalMs, { activeMs: Math.max(0, activeMs - silentMs) }),
  };
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

/** What plugins offer of the functions, and what the agent's configuration says about that. */
function kubeletOf(functions: readonly SimulatedFunction[]): Pick<SimulatedHardware, 'resources' | 'configuration'> {
  const pooled = functions.find(({ isPooled }) => isPooled);
  if (pooled === undefined) return { resources: [] };
  const offered = (resource: string, of: readonly SimulatedFunction[]): SimulatedResource[] =>
    of.length === 0 ? [] : [{ resource, deviceIds: of.map(({ address }) => address), numaNodes: of.map(({ card }) => card % 2) }];
  const virtual = offered(
    VF_RESOURCE,
    functions.filter(({ vf }) => vf !== undefined),
  );
  const physical = offered(
    PF_RESOURCE,
    functions.filter(({ vf, isPooled }) => vf === undefined && !isPooled),
  );
  const shared = { resource: SHARED_RESOURCE, deviceIds: Array.from({ length: SHARED_IDS }, (_, id) => String(id)) };
  return {
    resources: [...virtual.map((part) => ({ ...part, isServed: true as const })), ...physical, shared],
    configuration: {
      rules: [{ resource: SHARED_RESOURCE, devices: [`mlx5_${pooled.index}`] }],
      pluginResources: virtual.map(({ resource }) => ({ resource, select: { family: 'infiniband', kind: 'vf' }, idStrategy: 'bdf' })),
    },
  };
}
