import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { parseInteger } from '../kit/hwmon.ts';
import { addMemoryBanks, addUserFunction, type UserRead } from './alveo-user.ts';
import { addDriver, addPcie, addUpdates, type PciFacts, type PciPresence, pciIdentity, ReportBuilder, readPciFacts } from './board.ts';
import { addInfo } from './manager.ts';
import { metrics } from './metrics.ts';
import { parseCount, parseFlag } from './registers.ts';
import { addSensors, HYSTERESIS, MAIN_KINDS, type NamedSensor, nameSensors, readMonitor } from './sensors.ts';
import { atMostEvery, filesOf, numbered, type Placed, type ProbeMemory, type Survey } from './survey.ts';

/** `level` of a firewall that has not tripped: -1, printed as unsigned. */
const NO_LEVEL = 18_446_744_073_709_551_615n;

/**
 * Reads the files of the management function. Returns the number of its device node. It never opens `error`, because a read clears
 * it, nor files whose read sends a command to the controller.
 */
function addManagement(builder: ReportBuilder, id: string, files: DeviceFiles): number | undefined {
  addFirewall(builder, files);
  const isRecovery = files.value('recovery', parseFlag);
  if (isRecovery !== undefined) {
    const message = isRecovery ? 'the board booted its recovery image' : 'the board booted its own image';
    builder.find('RecoveryImage', isRecovery, isRecovery ? 'RecoveryBooted' : 'DefaultBooted', message, { instance: 'management' });
  }
  const offline = files.value('dev_offline', (text) => parseInteger(text));
  if (offline !== undefined) {
    const [isOffline, state] = offline === 1 ? [true, 'offline'] : [false, 'online'];
    const message = `the management function is ${state}`;
    builder.find('Reconfiguring', isOffline, isOffline ? 'Offline' : 'Idle', message, { instance: 'management' });
  }
  // If the board has a user function, that function reports the same counters.
  if (id === files.directory.split('/').at(-1)) addMemoryBanks(builder, files, 'm');
  return files.value('instance', parseInteger);
}

function addFirewall(builder: ReportBuilder, files: DeviceFiles): void {
  for (const name of numbered(files, /^firewall\.m\.\d+$/).slice(0, 1)) {
    const status = files.once(`${name}/status`, parseCount);
    if (status.isUnknown) builder.find('FirewallTripped', 'unknown', 'StatusSet', 'the status of the firewall cannot be read');
    if (status.value === undefined) continue;
    const isTripped = Number(status.value) !== 0;
    builder.add(metrics.firewallTripped, isTripped);
    const message = isTripped ? `firewall status ${status.value}${levelText(files, name)}` : 'firewall status 0';
    builder.find('FirewallTripped', isTripped, isTripped ? 'StatusSet' : 'Closed', message);
  }
}

function levelText(files: DeviceFiles, name: string): string {
  const level = files.value(`${name}/level`, parseCount);
  return level === undefined || BigInt(level) === NO_LEVEL ? '' : ` at level ${level}`;
}

/** Writable targets of clock scaling. They are not measurements. */
const TARGETS = /^(?:power2|temp15)$/;

/** FPGA temperatures in °C at which xclmgmt warns and at which the card shuts down. Source: XRT, mgmtpf health thread. */
const WARNING = 88;
const SHUTDOWN = 97;

/**
 * Adds the sensors of the satellite controller and its heartbeat. Each sweep costs a message to firmware and a line in the kernel log.
 * Therefore all files of a board are read together, at most once per interval.
 */
function addAlveoSensors(builder: ReportBuilder, survey: Survey, id: string, address: string): void {
  const { memory, options } = survey;
  const monitors = survey.monitors.filter((monitor) => monitor.address === address);
  const sensors = atMostEvery(survey, `${address}/sensors`, options['sensor-interval'], (each) => readAll(each, id, monitors));
  builder.asOf(memory.readMs(`${address}/sensors`), () => {
    addSensors(builder, sensors);
    const fpga = sensors.find(({ channel, name }) => channel.kind === 'temp' && name === 'fpga_temp');
    if (fpga?.value !== undefined) judgeFpga(builder, memory, id, fpga.value);
  });
  addHeartbeat(builder, filesOf(survey, `bus/pci/devices/${address}`, id));
}

function readAll(survey: Survey, id: string, monitors: readonly Placed[]): readonly NamedSensor[] {
  const request = { kinds: MAIN_KINDS, exclude: TARGETS };
  // The monitors of Versal boards look like hwmon, but each value has a unit of its own.
  const plain = monitors.filter(({ path }) => !/_hwmon_sdm_/.test(filesOf(survey, path, id).text('name') ?? ''));
  const sensors = plain.flatMap(({ path }) => readMonitor(filesOf(survey, path, id), request));
  // An absent sensor, or one whose controller is off, reads as 0. It still reserves its name.
  return nameSensors(sensors).filter(({ value }) => value !== undefined && value !== 0);
}

function judgeFpga(builder: ReportBuilder, memory: ProbeMemory, id: string, value: number): void {
  const isCritical = memory.isAbove(`${id}/shutdown`, value, SHUTDOWN, SHUTDOWN - HYSTERESIS);
  const isWarm = memory.isAbove(`${id}/warning`, value, WARNING, WARNING - HYSTERESIS);
  const message = `fpga_temp at ${value} °C, the card shuts down at ${SHUTDOWN} °C`;
  const instance = 'fpga_temp';
  if (isCritical) builder.find('OverTemperature', true, 'AboveCritical', message, { instance });
  else if (isWarm) builder.find('OverTemperature', true, 'AboveWarning', message, { instance, severity: 'degraded' });
  else builder.find('OverTemperature', isCritical === false && isWarm === false ? false : 'unknown', 'Normal', message, { instance });
}

function addHeartbeat(builder: ReportBuilder, files: DeviceFiles): void {
  const xmc = numbered(files, /^xmc\.[um]\.\d+$/)[0];
  const isStalled = xmc === undefined ? undefined : files.value(`${xmc}/xmc_heartbeat_stall`, parseFlag);
  if (isStalled === undefined) return;
  builder.find('BmcStalled', isStalled, isStalled ? 'HeartbeatStalled' : 'Alive', `xmc_heartbeat_stall is ${Number(isStalled)}`);
}

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
