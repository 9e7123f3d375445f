import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { addManagement } from './alveo-management.ts';
import { addAlveoSensors } from './alveo-sensors.ts';
import { addUserFunction, type UserRead } from './alveo-user.ts';
import { type PciFacts, pciIdentity, readPciFacts } from './board.ts';
import { addInfo } from './manager.ts';
import { addDriver, addPcie, type PciPresence } from './pcie-facts.ts';
import { ReportBuilder } from './report-builder.ts';
import { filesOf, type Survey } from './survey.ts';
import { addUpdates } from './updates.ts';

/** The two functions of one Alveo device. A virtual machine often has only the user function. */
interface Functions {
  readonly user?: string;
  readonly management?: string;
}

/** Reads all boards of the drivers xocl and xclmgmt. */
export function readAlveoBoards(survey: Survey): readonly DeviceReport[] {
  return findBoards(survey).flatMap((functions) => readBoard(survey, functions));
}

/**
 * The empty files `user_pf` and `mgmt_pf` are flags. They exist while the driver is loaded, also during a reset. The functions of one
 * device differ only in the last digit. Which digit is the user function depends on the shell.
 */
function findBoards({ host: { sys } }: Survey): readonly Functions[] {
  const boards = new Map<string, Functions>();
  for (const address of sys.list('bus/pci/devices')) {
    const slot = address.slice(0, address.lastIndexOf('.'));
    const directory = `bus/pci/devices/${address}`;
    if (sys.exists(`${directory}/user_pf`)) boards.set(slot, { ...boards.get(slot), user: address });
    else if (sys.exists(`${directory}/mgmt_pf`)) boards.set(slot, { ...boards.get(slot), management: address });
  }
  return [...boards.values()];
}

function readBoard(survey: Survey, { user, management }: Functions): DeviceReport | readonly [] {
  const { host, memory } = survey;
  const slot = (user ?? management ?? '').replace(/\.\d$/, '');
  // While the user function is lost, the device keeps its name.
  const id = memory.lastKnown(`${slot}/user`, user) ?? management;
  if (id === undefined) return [];
  const builder = new ReportBuilder();
  const pci = readPciFacts(host.sys, user ?? (management as string));
  const presence: PciPresence = addPcie(builder, survey, pci.pciAddress);
  if (user !== undefined) builder.find('FunctionLost', false, 'UserFunctionThere', `the user function ${user} is there`);
  else if (id !== management) addLostUser(builder, survey, id);
  const filesAt = (address: string): DeviceFiles => filesOf(survey, `bus/pci/devices/${address}`, id);
  const read: UserRead = presence === 'readable' && user !== undefined ? addUserFunction(builder, survey, id, filesAt(user)) : { pids: [] };
  const instance = presence === 'readable' && management !== undefined ? addManagement(builder, id, filesAt(management)) : undefined;
  if (presence === 'readable') addBoardFacts(builder, survey, id, { user, management }, read);
  const processes = read.pids.map((pid) => ({ pid, ...parseCgroup(host.proc.text(`${pid}/cgroup`) ?? '') }));
  return builder.report(describe(survey, { id, pci, management, instance, read }), processes);
}

/** Judges a user function without its flag file: it has left the bus, or it has lost its driver. */
function addLostUser(builder: ReportBuilder, { host: { sys } }: Survey, id: string): void {
  if (sys.exists(`bus/pci/devices/${id}`)) addDriver(builder, readPciFacts(sys, id).driver);
  else builder.find('FunctionLost', true, 'UserFunctionGone', `the user function ${id} is gone`);
}

function addBoardFacts(
  builder: ReportBuilder,
  survey: Survey,
  id: string,
  functions: { readonly user: string | undefined; readonly management: string | undefined },
  read: UserRead,
): void {
  const address = functions.user ?? (functions.management as string);
  addUpdates(builder, survey, functions.management ?? address);
  if (read.isResetting === true) return;
  addAlveoSensors(builder, survey, id, address);
  addInfo(builder, { stack: 'xrt', accelerator_id: read.loaded, shell: read.shell, compat_id: read.interfaceId });
}

interface Described {
  readonly id: string;
  readonly pci: PciFacts;
  readonly management: string | undefined;
  /** Number of `/dev/xclmgmt<n>`. */
  readonly instance: number | undefined;
  readonly read: UserRead;
}

function describe(survey: Survey, { id, pci, management, instance, read }: Described): Device {
  const nodes = [
    ...(instance === undefined ? [] : [`/dev/xclmgmt${instance}`]),
    ...(read.renderNode === undefined ? [] : [`/dev/dri/${read.renderNode}`]),
    ...queueNode(survey, id),
  ];
  return {
    family: 'fpga',
    id,
    kind: 'fpga',
    aliases: management === undefined || management === id ? [] : [management],
    ...pciIdentity(pci),
    pciAddress: id,
    model: read.model ?? 'Alveo',
    ...(read.serial !== undefined && { serial: read.serial }),
    ...(read.shell !== undefined && { firmware: read.shell }),
    stack: 'xrt',
    characterDevices: nodes,
  };
}

/** Returns the node of the QDMA engine. Its number comes from the address of the user function. */
function queueNode({ host: { dev } }: Survey, address: string): readonly string[] {
  const [domain = '0', bus = '0', rest = '0.0'] = address.split(':');
  const [slot = '0', fn = '0'] = rest.split('.');
  const number = Number.parseInt(domain, 16) * 65_536 + Number.parseInt(bus, 16) * 256 + Number.parseInt(slot, 16) * 8 + Number(fn);
  const node = `xfpga/dma.qdma.u${number}.0`;
  return dev.exists(node) ? [`/dev/${node}`] : [];
}
