import type { Host } from '../../host/host.ts';
import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import type { DeviceAccess } from '../../model/access.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ProblemSpec } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Remedy, Severity } from '../../model/health.ts';
import { namesIn } from '../../model/known-text.ts';
import { defineFamily } from '../family.ts';
import { fileProblems } from '../kit/device-files.ts';
import { addressOfId } from '../kit/ids.ts';
import { knownLine, type LogRow, logCondition, logMetric } from '../kit/log-row.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../kit/node-access.ts';
import { startFailed, startRows } from '../kit/pcie/bus-conditions.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { sensorProblems } from '../kit/temperature.ts';
import { BOARDS, bus, DRIVERS } from './board.ts';
import { allConditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { createFpgaProbe } from './probe.ts';
import { options, REGIONS } from './survey.ts';

/**
 * Returns what a container needs to use a board or a port. A DFL port has one node, read and write. A whole board has the nodes of all
 * its ports and the mode that Intel's container hook reads. It does not get the management node, which allows to program the board.
 * The tools of DFL and XRT take a board by its PCI address.
 */
export function access(device: Device): DeviceAccess {
  const { characterDevices: paths = [], stack = '' } = device;
  const nodes = nodeAccess(device, SRIOV_VARIABLE);
  // AMD's plugin gives each node both as a device with all permissions and as a mount.
  if (stack === 'xrt') {
    return {
      ...nodes,
      deviceNodes: paths.map((path) => ({ path, permissions: 'rwm' })),
      mounts: paths.map((path) => ({ path, hostPath: path, readOnly: false })),
    };
  }
  if (device.kind !== 'fpga' || paths.length === 0) return nodes;
  return { ...nodes, annotations: { 'com.intel.fpga.mode': 'fpga.intel.com/region' } };
}

/**
 * Resolves the forms of device ids that plugins use for FPGAs: names of ports and management engines, with or without `/dev/` (Intel);
 * PCI addresses of user functions in any spelling, with a suffix `-<n>` for shares of a card (AMD); either form as the device of a
 * claim. A plain number is no id, because indices depend on the probe order.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  const name = (claim?.device ?? deviceId)
    .trim()
    .toLowerCase()
    .replace(/^\/dev\//, '');
  if (name === '' || /^\d+$/.test(name)) return [];
  const named = devices.filter((device) => namesOf(device).includes(name));
  return (named.length > 0 ? named : atAddress(name, devices)).map(({ id }) => id);
};

const namesOf = (device: Device): readonly string[] => [device.id, ...device.aliases].map((name) => name.toLowerCase());

/** Prefers boards: a port has the address of its board or of a virtual function. */
function atAddress(name: string, devices: readonly Device[]): readonly Device[] {
  const address = addressOfId(name) ?? addressOfId(name.replace(/--?\d+$/, '')) ?? addressOfId(dashed(name));
  if (address === undefined) return [];
  const boards = devices.filter((device) => device.kind === 'fpga' && [device.pciAddress, ...namesOf(device)].includes(address));
  return boards.length > 0 ? boards : devices.filter((device) => device.pciAddress === address);
}

/** Converts `pci-0000-3b-00-0`, the form that drivers of resource claims use for addresses. */
function dashed(text: string): string {
  return text.replace(/^(?:pci-)?([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/, '$1:$2:$3.$4');
}

const BUS = 'bus/pci/devices';
const CLASSES = ['class/fpga_manager', REGIONS];

/** Returns true when a class has an entry, or when the driver, vendor or id of a PCI function identifies a board. */
export function isPresent({ sys }: Host): boolean {
  if (CLASSES.some((directory) => sys.list(directory).length > 0)) return true;
  const { names, error } = sys.listing(BUS);
  if (names === undefined) return error !== 'ENOENT';
  return names.some((address) => {
    const text = (file: string): string | undefined => sys.text(`${BUS}/${address}/${file}`)?.toLowerCase();
    const vendor = text('vendor');
    if (vendor === '0x10ee' || BOARDS.some((board) => board.vendor === vendor && board.device === text('device'))) return true;
    return ['user_pf', 'mgmt_pf'].some((flag) => sys.exists(`${BUS}/${address}/${flag}`));
  });
}

const problems = [
  {
    code: 'bus-unreadable',
    meaning: 'The directory of PCI functions exists but cannot be listed, so the agent knows nothing about any board.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/bus/pci/devices.",
  },
  ...fileProblems(
    'board',
    'Search the kernel log for the driver of the board; a board that does not answer may need a reset.',
    undefined,
    'Compare the versions of kernel and driver with those in the documentation, and report the text.',
  ),
  ...sensorProblems,
  {
    code: 'address-unknown',
    meaning: 'An FPGA region is not below a PCI function, so its board has no stable name.',
    remedy: 'None on boards without PCI; otherwise check that the agent sees the complete /sys of the host.',
  },
  {
    code: 'port-number-unknown',
    meaning: 'The number of a port within its board is unknown, so the port has no stable name yet.',
    remedy: 'The agent lists the port as soon as it can read the number once. If that does not happen, search the kernel log for dfl-afu.',
  },
] as const satisfies readonly ProblemSpec[];

const XRT = 'XRT src/runtime_src/core/pcie/driver/linux/xocl';

/** Conditions that only the kernel log shows. */
const logConditions = {
  StartFailed: startFailed,
  HotResetNeeded: logCondition({
    type: 'HotResetNeeded',
    severity: 'fatal',
    meaning: 'The management driver found the card in a bad state, which only a reset over PCIe ends.',
    remedy: 'reset',
    source: `kernel log: ${XRT}/mgmtpf/mgmt-core.c "Card requires pci hot reset"; ends with a reset of the card`,
  }),
};

const fault = (type: string, severity: Severity, remedy: Remedy) => ({ type, severity, remedy });
const xrtDrivers = ['xocl', 'xclmgmt'];
/** XRT prints the name of a part of the card, its address in memory and the function of the driver before the text. */
const xrt = (text: string): RegExp => new RegExp(`^(?:\\S{1,64} [0-9a-f]{1,16} )?\\w{1,64}: (?:${text})`);

/** Lines of XRT, of DFL, and of the FPGA managers of the kernel. */
const logRows: readonly LogRow[] = [
  ...startRows(DRIVERS),
  {
    name: 'firewall-tripped',
    drivers: xrtDrivers,
    text: xrt('AXI Firewall (?<number>\\d+) tripped'),
    means: 'firewall {number} between card and host tripped, because an accelerator broke the rules of the bus',
    source: `${XRT}/subdev/firewall.c, userpf/xocl_drv.c`,
    fault: fault('FirewallTripped', 'fatal', 'reset'),
  },
  {
    name: 'hot-reset-needed',
    drivers: xrtDrivers,
    text: xrt('Card requires pci hot reset|Card is in a B(?:ad|AD) state|Board is not able to recover by PCI Hot reset'),
    means: 'the card is in a bad state until it is reset',
    source: `${XRT}/mgmtpf/mgmt-core.c, mgmt-utils.c, subdev/xmc.c, userpf/xocl_drv.c`,
    raises: { condition: logConditions.HotResetNeeded },
    fault: fault('HotResetNeeded', 'fatal', 'reset'),
  },
  {
    name: 'hot-reset',
    drivers: xrtDrivers,
    text: xrt('Trying to reset card \\d+ in slot '),
    means: 'an operator resets the card',
    source: `${XRT}/mgmtpf/mgmt-utils.c, xclmgmt_hot_reset`,
    ends: [logConditions.HotResetNeeded],
  },
  {
    name: 'clocks-stopped',
    drivers: xrtDrivers,
    text: xrt('Critical temperature (?:or power )?event, kernel clocks have been stopped'),
    means: 'the card stopped its accelerators because of its temperature or power',
    source: `${XRT}/subdev/xmc.c, clock.c and ucs.c`,
    fault: fault('ThermalShutdown', 'fatal', 'check-cooling'),
  },
  {
    name: 'hot',
    drivers: xrtDrivers,
    text: xrt('Warning: A Xilinx acceleration device is reporting a temperature of (?<celsius>\\d+)C'),
    means: 'the card is at {celsius} °C, and stops at 97 °C',
    source: `${XRT}/mgmtpf/mgmt-core.c`,
    fault: fault('NearThermalShutdown', 'degraded', 'check-cooling'),
  },
  {
    name: 'link-lost',
    drivers: xrtDrivers,
    text: xrt('PCI link toggle was detected'),
    means: 'the PCIe link of the card was down for a moment',
    source: `${XRT}/mgmtpf/mgmt-core.c`,
    fault: fault('LinkLost', 'fatal', 'reseat'),
  },
  {
    name: 'port-reset-failed',
    drivers: ['dfl-port', 'dfl-afu'],
    text: /^timeout, (?:fail|failed) to reset device/,
    means: 'the accelerator did not end its work, so its port could not be reset',
    source: 'Linux drivers/fpga/dfl-afu-main.c, __afu_port_disable',
    fault: fault('PortResetFailed', 'degraded', 'restart-workload'),
  },
  {
    name: 'programming-failed',
    drivers: ['fpga_manager'],
    text: /^Error (?:preparing FPGA for|while|after) writing/,
    means: 'the FPGA could not be programmed',
    source: 'Linux drivers/fpga/fpga-mgr.c',
    fault: fault('ProgrammingFailed', 'degraded', 'restart-workload'),
  },
];

/**
 * The family has two kinds of devices. `fpga` is a board. Its id is the PCI address of its physical (DFL) or user (Alveo) function,
 * or the platform device of a board outside PCI. `port` is one accelerator slot of a DFL board: `<address>-port<number>`.
 */
export const family = defineFamily({
  name: 'fpga',
  title: 'FPGA',
  summary: 'FPGA boards: Intel DFL, AMD Alveo (XRT and ami), and FPGAs of SoCs known to the FPGA manager',
  kinds: ['fpga', 'port'],
  partSums: [
    {
      parent: 'FPGA card of several devices',
      parts: 'Devices of the card',
      areIncluded: 'No: each device has its own sensors and memory.',
    },
  ],
  metrics: [...Object.values(metrics), logMetric],
  conditions: [...allConditions, ...Object.values(logConditions)],
  problems: [...problems, ...logProblems],
  needs: [kernelLogNeed],
  logRows,
  isPresent,
  bus,
  options,
  createProbe: (host, values) =>
    createFpgaProbe(host, values, [...logRows, ...pcieLogRows], [...Object.values(logConditions), ...pcieLogConditions]),
  resolve,
  access,
  known: {
    kernelPrograms: knownLine([...logRows, ...pcieLogRows]),
    // Sensors of the cards' controllers.
    formats: ['d5005bmc', 'n3000bmc', 'n5010bmc', 'n6000bmc', 'c6100bmc'],
    files: {
      values: namesIn(`
        ap#_event dev_offline dev_state device_bad_state ecc_* errors *_errors id inf#_cal_fail
        inf#_init_done instance level mig_calibration ready recovery
        xmc_heartbeat_stall clock_freqs devices kdsstat memstat_raw state status vmr_status
      `),
      texts: ['bmcfw_version', 'VBNV', 'bitstream_id', 'amc_version', 'dev_name'],
      designs: ['afu_id', 'compat_id', 'interface_uuids', 'xclbinuuid', 'logic_uuid'],
    },
  },
});
