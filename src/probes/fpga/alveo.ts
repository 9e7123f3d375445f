import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceReport } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { parseInteger } from '../kit/hwmon.ts';
import { parseCount } from '../kit/text.ts';
import { addMemoryBanks, addUserFunction, type UserRead } from './alveo-user.ts';
import { addPcie, addUpdates, pciIdentity, ReportBuilder, readPciFacts } from './board.ts';
import { addInfo } from './manager.ts';
import { parseFlag } from './registers.ts';
import { addSensors, HYSTERESIS, MAIN_KINDS, type NamedSensor, nameSensors, readMonitor } from './sensors.ts';
import { atMostEvery, filesOf, numbered, type ProbeMemory, type Survey } from './survey.ts';

/**
 * Reads the files of the management function. Returns the number of its device node. It never opens `error`, because a read clears
 * it, nor files whose read sends a command to the controller.
 */
function addManagement(builder: ReportBuilder, id: string, files: DeviceFiles): number | undefined {
  addFirewall(builder, files);
  const isRecovery = files.value('recovery', parseFlag);
  const instance = 'management';
  builder.find('RecoveryImage', isRecovery, `the board booted its ${isRecovery ? 'recovery' : 'own'} image`, { instance });
  const offline = files.value('dev_offline', (text) => parseInteger(text));
  if (offline !== undefined) {
    if (offline === 1) builder.find('Reconfiguring', true, 'the management function is offline', { instance, reason: 'Offline' });
    else builder.find('Reconfiguring', false, 'the management function is online', { instance });
  }
  // If the board has a user function, that function reports the same counters.
  if (id === files.directory.split('/').at(-1)) addMemoryBanks(builder, files, 'm');
  return files.value('instance', parseInteger);
}

function addFirewall(builder: ReportBuilder, files: DeviceFiles): void {
  for (const name of numbered(files, /^firewall\.m\.\d+$/).slice(0, 1)) {
    const status = files.once(`${name}/status`, parseCount);
    if (status.isUnknown) builder.find('FirewallTripped', 'unknown', 'the status of the firewall cannot be read');
    if (status.value === undefined) continue;
    const isTripped = Number(status.value) !== 0;
    // A firewall that has not tripped has the level -1, printed as unsigned.
    const level = isTripped ? files.value(`${name}/level`, parseCount) : undefined;
    builder.find('FirewallTripped', isTripped, `firewall status ${status.value}${level === undefined ? '' : ` at level ${level}`}`);
  }
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
  const sensors = atMostEvery(survey, `${address}/sensors`, options['sensor-interval'], (each) => readAll(each, id, address));
  builder.asOf(memory.readMs(`${address}/sensors`), () => {
    addSensors(builder, sensors);
    const fpga = sensors.find(({ channel, name }) => channel.kind === 'temp' && name === 'fpga_temp');
    if (fpga?.value !== undefined) judgeFpga(builder, memory, id, fpga.value);
  });
  addHeartbeat(builder, filesOf(survey, `bus/pci/devices/${address}`, id));
}

function readAll(survey: Survey, id: string, address: string): readonly NamedSensor[] {
  const monitors = survey.monitors.filter((monitor) => monitor.address === address).map(({ path }) => filesOf(survey, path, id));
  // The monitors of Versal boards look like hwmon, but each value has a unit of its own.
  const plain = monitors.filter((files) => !/_hwmon_sdm_/.test(files.text('name') ?? ''));
  const sensors = plain.flatMap((files) => readMonitor(files, { kinds: MAIN_KINDS, exclude: TARGETS }));
  // An absent sensor, or one whose controller is off, reads as 0. It still reserves its name.
  return nameSensors(sensors).filter(({ value }) => value !== undefined && value !== 0);
}

function judgeFpga(builder: ReportBuilder, memory: ProbeMemory, id: string, value: number): void {
  const isCritical = memory.isAbove(`${id}/shutdown`, value, SHUTDOWN, SHUTDOWN - HYSTERESIS);
  const isWarm = memory.isAbove(`${id}/warning`, value, WARNING, WARNING - HYSTERESIS);
  const message = `fpga_temp at ${value} °C, the card shuts down at ${SHUTDOWN} °C`;
  const instance = 'fpga_temp';
  if (isCritical) builder.find('OverTemperature', true, message, { instance });
  else if (isWarm) builder.find('OverTemperature', true, message, { instance, reason: 'AboveWarning', severity: 'degraded' });
  else
    builder.find('OverTemperature', isCritical === false && isWarm === false ? false : 'unknown', message, { instance, reason: 'Normal' });
}

function addHeartbeat(builder: ReportBuilder, files: DeviceFiles): void {
  const xmc = numbered(files, /^xmc\.[um]\.\d+$/)[0];
  const isStalled = xmc === undefined ? undefined : files.value(`${xmc}/xmc_heartbeat_stall`, parseFlag);
  builder.find('BmcStalled', isStalled, `xmc_heartbeat_stall is ${Number(isStalled)}`);
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
  const { sys } = host;
  const address = user ?? management ?? '';
  // While the user function is lost, the device keeps its name.
  const id = memory.lastKnown(`${address.replace(/\.\d$/, '')}/user`, user) ?? management;
  if (id === undefined) return [];
  const builder = new ReportBuilder();
  const pci = readPciFacts(sys, address);
  const isReadable = addPcie(builder, survey, pci.pciAddress) === 'readable';
  if (user !== undefined) builder.find('FunctionLost', false, `the user function ${user} is there`);
  // Without its flag file it has left the bus, or it has lost its driver.
  else if (id !== management && !sys.exists(`bus/pci/devices/${id}`)) builder.find('FunctionLost', true, `the user function ${id} is gone`);
  const filesAt = (one: string): DeviceFiles => filesOf(survey, `bus/pci/devices/${one}`, id);
  const read: UserRead = isReadable && user !== undefined ? addUserFunction(builder, survey, id, filesAt(user)) : { pids: [] };
  /** Number of `/dev/xclmgmt<n>`. */
  const instance = isReadable && management !== undefined ? addManagement(builder, id, filesAt(management)) : undefined;
  const { model = 'Alveo', serial, shell, renderNode, loaded, interfaceId, pids } = read;
  if (isReadable) addUpdates(builder, survey, management ?? address);
  if (isReadable && read.isResetting !== true) {
    addAlveoSensors(builder, survey, id, address);
    addInfo(builder, { stack: 'xrt', accelerator_id: loaded, shell, compat_id: interfaceId });
  }
  const device: Device = defined({
    family: 'fpga',
    id,
    kind: 'fpga',
    aliases: management === undefined || management === id ? [] : [management],
    ...pciIdentity(pci),
    pciAddress: id,
    model,
    serial,
    firmware: shell,
    stack: 'xrt',
    characterDevices: [
      ...(instance === undefined ? [] : [`/dev/xclmgmt${instance}`]),
      ...(renderNode === undefined ? [] : [`/dev/dri/${renderNode}`]),
      ...queueNode(survey, id),
    ],
  });
  return builder.report(
    device,
    pids.map((pid) => ({ pid, ...parseCgroup(host.proc.text(`${pid}/cgroup`) ?? '') })),
  );
}

/** Returns the node of the QDMA engine. Its number comes from the address of the user function. */
function queueNode({ host: { dev } }: Survey, address: string): readonly string[] {
  const [domain = '0', bus = '0', rest = '0.0'] = address.split(':');
  const [slot = '0', fn = '0'] = rest.split('.');
  const number = Number.parseInt(domain, 16) * 65_536 + Number.parseInt(bus, 16) * 256 + Number.parseInt(slot, 16) * 8 + Number(fn);
  const node = `xfpga/dma.qdma.u${number}.0`;
  return dev.exists(node) ? [`/dev/${node}`] : [];
}
