import type { DeviceRead } from '../../../model/collection.ts';
import { minutes, seconds } from '../../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../../model/health.ts';
import { declaredFinding } from '../finding.ts';
import { type LogRow, logCondition } from '../log-row.ts';

/** What the PCI bus and the driver core tell of a device, before its own driver tells anything. */

const BUS = '/sys/bus/pci/devices';
/** A claim of a device that moves from driver to driver may take this time. */
const CLAIM_MS = seconds(60);
const onBus = { class: 'in-progress', severity: 'fatal' } as const;

export const notStarted = {
  ...onBus,
  type: 'NotStarted',
  reasons: ['NotBound', 'Served'],
  meaning: 'No driver is bound to the device, although its driver is bound to another device of the same model.',
  remedy: 'reboot',
  source: `${BUS}: driver, compared with the functions of the same vendor and device`,
  forMs: minutes(2),
} as const satisfies ConditionSpec;

export const driverUnbound = {
  ...onBus,
  type: 'DriverUnbound',
  reasons: ['NoDriver', 'OtherDriver', 'Bound'],
  meaning:
    'No driver that can serve the device is bound to it, although one was before, or a container holds it. A device that was handed to another driver on purpose does not count.',
  remedy: 'reload-driver',
  source: `${BUS}: driver`,
  forMs: CLAIM_MS,
} as const satisfies ConditionSpec;

const driverMissing = {
  ...onBus,
  class: 'self-clearing',
  type: 'DriverMissing',
  reasons: ['NoDriver', 'Served'],
  meaning: 'No driver is bound to a device that a machine has only to use it, so no program can use it.',
  remedy: 'reload-driver',
  source: `${BUS}: driver`,
} as const satisfies ConditionSpec;

const nodeMissing = {
  ...onBus,
  type: 'NodeMissing',
  reasons: ['NoNode', 'NodesPresent'],
  meaning: 'The driver is bound, and a device node that it makes is missing, so no program can open the device.',
  remedy: 'reload-driver',
  source: 'The names of the nodes by the files of the driver, compared with /dev, where the agent sees nodes of the same directory',
  forMs: minutes(2),
} as const satisfies ConditionSpec;

const state = { class: 'self-clearing', severity: 'info', remedy: 'none' } as const;

const handedOver = {
  ...state,
  type: 'HandedOver',
  reasons: ['OtherDriver', 'Served'],
  meaning:
    'The device was handed to another driver on purpose, as for a virtual machine or a program in user space. This is a state and no fault: only its PCI function is read.',
  source: `${BUS}: driver (names with vfio, pci-stub, pciback, uio), driver_override`,
} as const satisfies ConditionSpec;

const notInUse = {
  ...state,
  type: 'NotInUse',
  reasons: ['NoDriver', 'Served'],
  meaning:
    'No driver is bound to the device, and nothing shows that somebody wants one: no container holds it, it was not used before, no device of its model has a driver, and the kernel log has no failed start.',
  source: `${BUS}: driver`,
} as const satisfies ConditionSpec;

/** The driver itself says so. */
export const startFailed = logCondition({
  type: 'StartFailed',
  severity: 'fatal',
  meaning: 'The driver could not start the device.',
  remedy: 'reboot',
  source:
    'kernel log: Linux drivers/base/dd.c "probe with driver … failed with error", before Linux 6.10 "probe of … failed with error"; ends when the driver starts',
});

/** What the bus shows, of every family with {@link BusHardware}. */
export const busConditions: readonly ConditionSpec[] = [notStarted, driverUnbound, driverMissing, nodeMissing, handedOver, notInUse];

const failed = (drivers: readonly string[]): Omit<LogRow, 'name' | 'text'> => ({
  drivers,
  means: 'the driver could not start the device: error {error}',
  source: 'Linux drivers/base/dd.c, call_driver_probe',
  words: {
    error: {
      ...{ '-2': '-2 (no such file)', '-5': '-5 (input or output)', '-12': '-12 (out of memory)', '-14': '-14 (bad address)' },
      ...{ '-16': '-16 (busy)', '-19': '-19 (no such device)', '-22': '-22 (invalid argument)', '-62': '-62 (timer expired)' },
      '-110': '-110 (timed out)',
    },
  },
  raises: { condition: startFailed },
});

/** Lines of the driver core about drivers that could not start. No name: any driver. */
export const startRows = (drivers: readonly string[]): readonly LogRow[] => [
  { name: 'start-failed', text: /^probe with driver \S+ failed with error (?<error>-?\d+)/, ...failed(drivers) },
  {
    name: 'old-start-failed',
    ...failed(drivers),
    text: new RegExp(
      `^(?:${drivers.join('|') || '\\S{1,64}'}): probe of (?<device>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]) failed with error (?<error>-?\\d+)`,
    ),
    withoutDevice: { class: 'pci', name: '{device}', fixed: ' failed with error ' },
  },
];

export const isNotStarted = (address: string): Finding =>
  declaredFinding(notStarted, 'NotBound', {
    status: true,
    message: `no driver is bound to PCI function ${address}, and one is to another device of this model`,
  });

export const isWithoutDriver = (address: string): Finding =>
  declaredFinding(driverMissing, 'NoDriver', { status: true, message: `no driver is bound to PCI function ${address}` });

/** `now`: the driver that is bound in place of one of the family. */
export const isUnbound = (address: string, now?: string): Finding =>
  declaredFinding(driverUnbound, now === undefined ? 'NoDriver' : 'OtherDriver', {
    status: true,
    message:
      now === undefined
        ? `no driver is bound to PCI function ${address}`
        : `PCI function ${address} is bound to ${now}, not to its own driver`,
  });

/** Who has a device in hand wants it. */
export const isUnboundIfHeld = (address: string): Finding =>
  declaredFinding(driverUnbound, 'NoDriver', {
    status: true,
    ifHeld: true,
    message: `no driver is bound to PCI function ${address}, and a container holds it`,
  });

export const isHandedOver = (to: string, node?: string): Finding =>
  declaredFinding(handedOver, 'OtherDriver', { status: true, message: `handed over to ${to}${node === undefined ? '' : ` (${node})`}` });

export const isNotInUse: Finding = declaredFinding(notInUse, 'NoDriver', {
  status: true,
  ifHeld: false,
  message: 'not in use: no driver is bound, and nobody wants one',
});

/** `path`: undefined when the driver made no node, so that it has no name. */
export const lacksNode = (path: string | undefined): Finding =>
  declaredFinding(nodeMissing, 'NoNode', {
    status: true,
    message: path === undefined ? 'the driver made no device node' : `${path} does not exist`,
  });

export const hasNodes: Finding = declaredFinding(nodeMissing, 'NodesPresent', { status: false, message: 'the device nodes exist' });

const message = 'the bus shows another state of the device';
/** Of a device that no driver of the family has. */
const needsNoNode: Finding = declaredFinding(nodeMissing, 'NodesPresent', { status: false, message });

/** Of a device that was told otherwise before. */
export const served: readonly Finding[] = [
  declaredFinding(notStarted, 'Served', { status: false, message }),
  declaredFinding(driverMissing, 'Served', { status: false, message }),
  declaredFinding(driverUnbound, 'Bound', { status: false, message }),
  declaredFinding(handedOver, 'Served', { status: false, message }),
  declaredFinding(notInUse, 'Served', { status: false, message }),
];

/** What held before and does not hold now is denied. */
export const whole = (findings: readonly Finding[], wasTold: boolean): readonly Finding[] =>
  wasTold ? [...findings, ...[...served, needsNoNode].filter(({ type }) => !findings.some((one) => one.type === type))] : findings;

/** What the family itself says comes first. */
export const withFindings = (read: DeviceRead, findings: readonly Finding[]): DeviceRead => ({
  ...read,
  findings: [...read.findings, ...findings.filter(({ type }) => !read.findings.some((one) => one.type === type))],
});
