import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport } from '../../model/collection.ts';
import type { ConditionSpec } from '../../model/health.ts';
import type { Probe } from '../family.ts';
import { unlisted } from '../kit/device-files.ts';
import { LastIdentities } from '../kit/identities.ts';
import type { LogRow } from '../kit/log-row.ts';
import { RowLog } from '../kit/log-rows.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { readAlveoBoards } from './alveo.ts';
import { addAmi } from './ami.ts';
import {
  addPcie,
  bus,
  type DflFunction,
  groupByBoard,
  isFpgaBoard,
  isOfDesign,
  pciIdentity,
  ReportBuilder,
  readPciFacts,
  type Unit,
} from './board.ts';
import { type CardRead, readDflCard, readDflPort } from './dfl.ts';
import { readManagedBoards } from './manager.ts';
import { type FpgaOptions, makeSurvey, ProbeMemory, placedIn, REGIONS, type Survey } from './survey.ts';

export function createFpgaProbe(host: Host, options: FpgaOptions, logRows: readonly LogRow[], conditions: readonly ConditionSpec[]): Probe {
  const memory = new ProbeMemory(host.clock);
  const identities = new LastIdentities(host.known);
  const log = new RowLog(host, logRows, conditions);
  const onBus = new Bus(host, { family: 'fpga', hardware: bus, listedByBus: ['fpga'], pcie: 'link' });
  return {
    collect() {
      memory.begin();
      const found = collect(makeSurvey(host, options, memory));
      const reports = found.reports.map((report) => identified(report, identities));
      const all = onBus.added({ ...found, reports }, log);
      return log.withLogs({ ...all, reports: all.reports.filter(({ device }) => !isOfDesign(device, all.reports)) });
    },
    watch: (wake) => log.watch(wake),
    close: () => log.close(),
  };
}

/** Two devices of one card may have one serial number. A port belongs to its board. A board without a number is identified by its place. */
function identified(report: DeviceReport, identities: LastIdentities): DeviceReport {
  const { id, serial } = report.device;
  return { ...report, device: { ...report.device, ...identities.of(id, serial === undefined ? undefined : `${serial} ${id}`) } };
}

const BUS = 'bus/pci/devices';

/** Each stack finds its own boards. The other boards on the bus have no driver that reports values. */
function collect(survey: Survey): Collection {
  const { error } = survey.host.sys.listing(BUS);
  // A platform without PCI has no such directory. If it exists but cannot be listed, the board of a file is unknown.
  if (error !== undefined && error !== 'ENOENT') return unlisted(BUS, error, 'bus-unreadable');
  const reports = [...readDflBoards(survey), ...readAlveoBoards(survey)];
  const known = scanBus(survey, addressesOf(reports));
  reports.push(...readManagedBoards(survey, addressesOf(reports)));
  const taken = addressesOf(reports);
  reports.push(...known.filter((address) => !taken.has(address)).flatMap((address) => readBareBoard(survey, address)));
  // Without a PCI bus and without FPGA managers, the family has nothing to list.
  return { reports, problems: survey.problems, listing: error === undefined || survey.managers.length > 0 ? 'complete' : 'absent' };
}

function addressesOf(reports: readonly DeviceReport[]): ReadonlySet<string> {
  return new Set(reports.flatMap(({ device }) => [device.pciAddress ?? device.id, ...(device.kind === 'fpga' ? device.aliases : [])]));
}

/** Vendors in the tables of boards. The PCI core caches the vendor file, so a read does not wake a device. */
const VENDORS: ReadonlySet<string> = new Set(['0x8086', '0x1c2c', '0x10ee']);

/** Returns functions of board vendors that no stack reported. Other functions of a reported device are not read. */
function scanBus({ host: { sys } }: Survey, taken: ReadonlySet<string>): readonly string[] {
  const slotOf = (address: string): string => address.slice(0, address.lastIndexOf('.'));
  const slots = new Set([...taken].map(slotOf));
  const left = sys.list(BUS).filter((address) => !slots.has(slotOf(address)));
  return left.filter((address) => VENDORS.has(sys.text(`${BUS}/${address}/vendor`)?.toLowerCase() ?? ''));
}

/** Reports a board without a driver, with ami, or with a driver that reports no values, such as `vfio-pci` or a custom driver. */
function readBareBoard(survey: Survey, address: string): readonly DeviceReport[] {
  const pci = readPciFacts(survey.host.sys, address);
  if (!isFpgaBoard(pci)) return [];
  const builder = new ReportBuilder();
  const isReadable = addPcie(builder, survey, address) === 'readable';
  const own = isReadable && pci.driver === 'ami' ? addAmi(builder, survey, address) : { stack: 'none' };
  return [builder.report({ family: 'fpga', id: address, kind: 'fpga', aliases: [], ...pciIdentity(pci), ...own })];
}

/** Reads all boards of Intel's driver, with their ports. */
function readDflBoards(survey: Survey): readonly DeviceReport[] {
  return groupByBoard(findFunctions(survey), (address) => readPciFacts(survey.host.sys, address).physicalFunction).flatMap((board) => {
    const card: CardRead = readDflCard(survey, board);
    const ports = board.ports.flatMap((port) => readDflPort(survey, board, port, card) ?? []);
    return [card.report, ...ports];
  });
}

/**
 * Finds the base regions, which have a management engine or a port. Regions for reconfiguration are in the same class directory, but
 * have neither.
 */
function findFunctions(survey: Survey): readonly DflFunction[] {
  const { sys } = survey.host;
  return placedIn(sys, REGIONS).flatMap((region) => {
    const names = sys.list(region.path);
    const units = (pattern: RegExp): readonly Unit[] =>
      names.filter((name) => pattern.test(name)).map((name) => ({ name, path: `${region.path}/${name}` }));
    const [engines, ports] = [units(/^dfl-fme\.\d+$/), units(/^dfl-port\.\d+$/)];
    if (engines.length === 0 && ports.length === 0) return [];
    if (region.address === undefined) {
      survey.problems.push({ code: 'address-unknown', message: `/sys/${REGIONS}/${region.name} lies below no PCI function` });
      return [];
    }
    return [{ address: region.address, engines, ports }];
  });
}
