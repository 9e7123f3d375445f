import type { Tree } from '../../host/fs/tree.ts';
import { doesPciFunctionAnswer, isAsleepState } from '../../host/pci/pcie.ts';
import type { DeviceProcess, DeviceReport } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding, StatusFinding } from '../../model/health.ts';
import { namesIn } from '../../model/known-text.ts';
import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { asOf } from '../kit/pace.ts';
import { type PciFunction, readPciFunction } from '../kit/pcie/function.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { PCIE_EVERY_MS, type PcieSample, pcieReadings, readPcie } from '../kit/pcie/pcie.ts';
import { allConditions, type ConditionName, conditions } from './conditions.ts';
import { atMostEvery, byUnits, filesOf, type Placed, type Survey } from './survey.ts';

export type FindingDetails<T extends ConditionName> = Pick<StatusFinding, 'instance' | 'severity' | 'remedy' | 'causedBy'> & {
  readonly reason?: (typeof conditions)[T]['reasons'][number];
};

/** Collects the readings and findings of one device. */
export class ReportBuilder {
  readonly readings: Reading[] = [];
  readonly findings: Finding[] = [];

  /** Gives all that `add` adds the time of its read, when an earlier collection made it; undefined: the present one. */
  asOf(readMs: number | undefined, add: () => void): void {
    const [readings, findings] = [this.readings.length, this.findings.length];
    add();
    this.readings.push(...asOf(this.readings.splice(readings), readMs));
    this.findings.push(...asOf(this.findings.splice(findings), readMs));
  }

  /** Adds a reading. An undefined value adds none. */
  add(metric: MetricSpec, value: Value | boolean | undefined, labels?: Labels): void {
    if (value === undefined) return;
    const plain = typeof value === 'boolean' ? Number(value) : value;
    this.readings.push(labels === undefined ? { metric: metric.name, value: plain } : { metric: metric.name, labels, value: plain });
  }

  /** Adds the present state as one series with the value 1. A state outside the closed set adds none. */
  addState(metric: MetricSpec, states: readonly string[], present: string): void {
    if (states.includes(present)) this.add(metric, 1, { state: present });
  }

  /**
   * Adds a finding; an undefined status adds none. Unless it says another reason, one that does not hold has the last reason that its
   * condition declares, and every other the first.
   */
  find<T extends ConditionName>(type: T, status: StatusFinding['status'] | undefined, message: string, told: FindingDetails<T> = {}): void {
    if (status === undefined) return;
    const { reasons } = conditions[type];
    const reason = (status === false ? reasons.at(-1) : reasons[0]) as string;
    this.findings.push({ type, status, reason, message, ...told });
  }

  /** Returns the types of the fatal conditions with this status, without those of the classes `in-progress` and `no-data`. */
  fatalConditions(wanted: true | 'unknown'): readonly string[] {
    const found = this.findings.filter(({ type, status, severity }) => {
      const spec = allConditions.find((each) => each.type === type);
      return status === wanted && (severity ?? spec?.severity) === 'fatal' && spec?.class !== 'in-progress' && spec?.class !== 'no-data';
    });
    return [...new Set(found.map(({ type }) => type))];
  }

  report(device: Device, processes?: readonly DeviceProcess[]): DeviceReport {
    const { readings, findings } = this;
    return { device, read: processes === undefined ? { readings, findings } : { readings, findings, processes } };
  }
}

/** Only a `readable` function allows reads of the driver's files. A read would wake an `asleep` function, and is invalid on a `gone` one. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Adds all PCIe facts of one physical function. Says whether its driver's files may be read. */
export function addPcie(builder: ReportBuilder, survey: Survey, address: string): PciPresence {
  const { sys } = survey.host;
  const answers = doesPciFunctionAnswer(sys, address);
  if (answers === false) {
    builder.findings.push(...pcieErrorFindings({ link: { isAsleep: false }, aer: { errors: [], totals: {} }, answers }));
    return 'gone';
  }
  const isAsleep = isAsleepState(sys.text(`bus/pci/devices/${address}/power_state`));
  const read = (): PcieSample => readPcie(sys, address);
  const key = `${address}/pcie`;
  const { link, aer } = isAsleep ? read() : atMostEvery(survey, key, PCIE_EVERY_MS, read);
  const sample = { link, aer, ...(answers !== undefined && { answers }), readMs: isAsleep ? undefined : survey.memory.readMs(key) };
  builder.readings.push(...pcieReadings(sample));
  builder.findings.push(...pcieFindings(sample));
  return isAsleep ? 'asleep' : 'readable';
}

/** Source: Linux Documentation/ABI/testing/sysfs-class-firmware. */
const UPLOAD_STATES: ReadonlySet<string> = new Set(['receiving', 'preparing', 'transferring', 'programming']);

/** Adds the state of firmware uploads. */
export function addUpdates(builder: ReportBuilder, survey: Survey, address: string): void {
  const uploads = survey.uploads.filter((upload) => upload.address === address);
  const states = uploads.flatMap(({ path }) => filesOf(survey, path, address).text('status') ?? []);
  const running = states.find((state) => UPLOAD_STATES.has(state));
  if (states.length === 0) return;
  builder.find('UpdateRunning', running !== undefined, `firmware upload: ${running ?? 'idle'}`, { instance: 'upload' });
}

/** Facts of a PCI function of a board. */
export interface PciFacts extends PciFunction {
  readonly subsystem?: string;
  /** `0x120000`: processing accelerator. */
  readonly classCode?: string;
}

export function readPciFacts(sys: Tree, address: string): PciFacts {
  const text = (file: string): string | undefined => sys.text(`bus/pci/devices/${address}/${file}`)?.toLowerCase() || undefined;
  return defined({ ...readPciFunction(sys, address), subsystem: text('subsystem_device'), classCode: text('class') });
}

interface BoardModel {
  readonly vendor: string;
  readonly device: string;
  readonly subsystem?: string;
  readonly model: string;
}

/** Boards of dfl-pci and ami. Source: Linux drivers/fpga/dfl-pci.c; AVED sw/AMI/driver/ami_pcie.h. Rows with the right subsystem take priority. */
export const BOARDS: readonly BoardModel[] = [
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x138d', model: 'Intel FPGA PAC D5005' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x1770', model: 'Intel FPGA SmartNIC N6000-PL' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x1771', model: 'Intel FPGA SmartNIC N6001-PL' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x17d4', model: 'Intel IPU C6100' },
  { vendor: '0x8086', device: '0xbcce', model: 'Intel DFL board' },
  { vendor: '0x8086', device: '0xbcbd', model: 'Intel integrated FPGA' },
  { vendor: '0x8086', device: '0xbcc0', model: 'Intel integrated FPGA' },
  { vendor: '0x8086', device: '0x09c4', model: 'Intel FPGA PAC A10' },
  { vendor: '0x8086', device: '0x0b30', model: 'Intel FPGA PAC N3000' },
  { vendor: '0x8086', device: '0x0b2b', model: 'Intel FPGA PAC D5005' },
  { vendor: '0x1c2c', device: '0x1000', model: 'Silicom FPGA SmartNIC N5010' },
  { vendor: '0x1c2c', device: '0x1001', model: 'Silicom FPGA SmartNIC N5011' },
  { vendor: '0x10ee', device: '0x50b4', model: 'Alveo V80' },
  { vendor: '0x10ee', device: '0x50bc', model: 'Alveo V80P' },
];

export const DRIVERS: readonly string[] = ['xocl', 'xclmgmt', 'ami', 'dfl-pci'];

/** Functions of Alveo boards that xclmgmt, xocl and ami know, since U200. Source: XRT xocl/devices.h; ami_pcie.h. */
const ALVEO: readonly string[] = namesIn(`
  0x5000 0x5001 0x5004 0x5005 0x5008 0x5009 0x500c 0x500d 0x5020 0x5021 0x5028 0x5029 0x5030 0x5031 0x5034 0x5035 0x503c 0x503d 0x5044
  0x5045 0x5048 0x5049 0x504e 0x504f 0x5050 0x5051 0x5058 0x5059 0x505c 0x505d 0x5060 0x5061 0x506c 0x506d 0x5074 0x5075 0x5078 0x5079
  0x5086 0x5094 0x5095 0x5098 0x5099 0x50b4 0x50bc 0x513c 0x513d 0x6098 0x6099
`);

const amd = { vendor: '0x10ee', maker: 'AMD', classes: ['12'], kind: 'fpga' };

/** An FPGA manager has boards of other drivers. */
const hardware: readonly BusHardware[] = [
  { what: 'AMD (Xilinx) Alveo', ...amd, devices: ALVEO },
  { what: 'AMD (Xilinx) accelerator with a design of its user', ...amd, isListedByFault: true },
  {
    what: 'Intel FPGA card',
    vendor: '0x8086',
    maker: 'Intel',
    classes: ['12'],
    devices: ['0x09c4', '0x0b2b', '0x0b30', '0xbcbd', '0xbcc0', '0xbcce'],
    kind: 'fpga',
  },
  { what: 'Silicom FPGA card', vendor: '0x1c2c', maker: 'Silicom', devices: ['0x1000', '0x1001'], kind: 'fpga' },
];
export const bus = hardware.map((one): BusHardware => ({ ...one, drivers: DRIVERS, hasOtherDrivers: true }));

/** Source: PCI ID repository; makers and resellers of Alveo boards from the list in AMD's device plugin. */
const VENDORS: Readonly<Record<string, string>> = {
  '0x8086': 'Intel',
  '0x1c2c': 'Silicom',
  '0x10ee': 'AMD',
  '0x13fe': 'Advantech',
  '0x1d0f': 'Amazon',
  '0x3475': 'Arista',
};

export function modelOf({ pciVendor: vendor, pciDevice: device, subsystem }: PciFacts): string | undefined {
  const rows = BOARDS.filter((row) => row.vendor === vendor && row.device === device);
  return (rows.find((row) => row.subsystem === subsystem) ?? rows.find((row) => row.subsystem === undefined))?.model;
}

/** Returns true for physical functions that a driver knows by their ids, and for accelerators of AMD that have another driver. */
export function isFpgaBoard(facts: PciFacts): boolean {
  const { pciVendor, pciDevice = '', classCode = '', driver } = facts;
  if (facts.physicalFunction !== undefined) return false;
  if (modelOf(facts) !== undefined) return true;
  return pciVendor === amd.vendor && classCode.startsWith('0x12') && (ALVEO.includes(pciDevice) || driver !== undefined);
}

/** A function that no driver knows, beside one that a driver knows, is for a design of the user, who loads a driver for it. */
export function isOfDesign({ pciVendor, pciDevice = '', pciAddress = '' }: Device, all: readonly DeviceReport[]): boolean {
  if (pciVendor !== amd.vendor || ALVEO.includes(pciDevice)) return false;
  const isBeside = (other: Device): boolean => other.pciAddress?.startsWith(pciAddress.slice(0, -1)) === true;
  return all.some(({ device }) => isBeside(device) && ALVEO.includes(device.pciDevice ?? ''));
}

/** Returns the members of a device that come from the PCI core. */
export function pciIdentity(facts: PciFacts): Partial<Device> {
  const { physicalFunction: _, subsystem: __, classCode: ___, ...members } = facts;
  const { pciVendor = '' } = facts;
  return defined({ ...members, vendor: VENDORS[pciVendor] ?? facts.pciVendor, model: modelOf(facts) });
}

/** Management engine or port of a board, for example `dfl-fme.0`, and the directory of its files. */
export interface Unit {
  readonly name: string;
  readonly path: string;
}

/** One PCI function with its management engines and its ports. */
export interface DflFunction {
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly Unit[];
}

/** One board: its physical function and all ports, including those on virtual functions. */
export interface DflBoard {
  /** Address of the physical function. */
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly (Unit & { readonly address: string })[];
}

/** Assigns the ports of virtual functions to the board of their physical function. Pure. */
export function groupByBoard(
  functions: readonly DflFunction[],
  physicalFunctionOf: (address: string) => string | undefined,
): readonly DflBoard[] {
  const boards = new Map<string, DflBoard>();
  for (const { address, engines, ports } of functions) {
    const board = physicalFunctionOf(address) ?? address;
    const before = boards.get(board);
    boards.set(board, {
      address: board,
      engines: [...(before?.engines ?? []), ...engines],
      ports: [...(before?.ports ?? []), ...ports.map((port) => ({ ...port, address }))],
    });
  }
  return [...boards.values()].sort((a, b) => byUnits(a.address, b.address));
}

export function onBoard(board: DflBoard, placed: readonly Placed[]): readonly Placed[] {
  return placed.filter(({ address }) => address === board.address);
}
