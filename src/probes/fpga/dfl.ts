import type { DeviceReport } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import { hours } from '../../model/duration.ts';
import type { DeviceFiles, FileFact } from '../kit/device-files.ts';
import {
  addPcie,
  addUpdates,
  type DflBoard,
  onBoard,
  type PciPresence,
  pciIdentity,
  ReportBuilder,
  readPciFacts,
  type Unit,
} from './board.ts';
import { addInfo, addManager, readManager } from './manager.ts';
import { metrics } from './metrics.ts';
import {
  addEngineErrors,
  addErrorBits,
  bitNames,
  hex,
  isAllOnes,
  maskOf,
  parseFlag,
  parseId,
  parseRegister,
  readErrorMasks,
  readRevision,
} from './registers.ts';
import { addDflSensors, readControllerVersion } from './sensors.ts';
import { atMostEvery, filesOf, numbered, type Survey } from './survey.ts';

/** Report of a board, and the data that its ports need. */
export interface CardRead {
  readonly report: DeviceReport;
  readonly presence: PciPresence;
  /** Types of the fatal conditions that hold for the whole board; empty when there is none. */
  readonly faults: readonly string[];
  /** Whether such a condition may hold unnoticed, because the board sleeps or a needed file cannot be read. */
  readonly isDoubtful: boolean;
  /** True when the registers read as all ones. Fields that drivers extract from them are then meaningless. */
  readonly isDead: boolean;
  readonly compatId?: string;
}

/** Reads one board without its ports. */
export function readDflCard(survey: Survey, board: DflBoard): CardRead {
  const { sys } = survey.host;
  const builder = new ReportBuilder();
  const files = filesOf(survey, `bus/pci/devices/${board.address}`, board.address);
  const presence = addPcie(builder, survey, board.address);
  const { isDead, compatId, firmware }: Loaded =
    presence === 'readable' ? addDriverFacts(builder, survey, board, files) : { isDead: false };
  const identity = pciIdentity(readPciFacts(sys, board.address));
  const device = defined({
    family: 'fpga',
    id: board.address,
    kind: 'fpga',
    aliases: aliasesOf(board),
    ...identity,
    model: identity.model ?? 'DFL board',
    firmware,
    stack: 'dfl',
    characterDevices: board.ports.map(({ name }) => `/dev/${name}`),
  });
  const faults = builder.fatalConditions(true);
  const isCleared = builder.findings.some(({ type, status }) => type === 'FatalError' && status === false);
  const isDoubtful = presence === 'asleep' || builder.fatalConditions('unknown').length > 0 || (board.engines.length > 0 && !isCleared);
  return defined({ report: builder.report(device), presence, faults, isDoubtful, isDead, compatId });
}

/**
 * The name of an engine is an alias of the whole board. The name of the only port is also an alias: the pod that holds the only port
 * uses the board alone, so it also needs the values of the board.
 */
function aliasesOf({ engines, ports }: DflBoard): readonly string[] {
  const only = ports.length === 1 ? ports : [];
  return [...engines, ...only].map(({ name }) => name);
}

interface Loaded {
  readonly isDead: boolean;
  readonly compatId?: string;
  /** Version of the board's controller. */
  readonly firmware?: string;
}

function addDriverFacts(builder: ReportBuilder, survey: Survey, board: DflBoard, files: DeviceFiles): Loaded {
  const { address } = board;
  const engine = board.engines[0];
  // The id has 64 bits, so it stays a bigint.
  const bitstreamId = engine === undefined ? undefined : files.in(engine.path).value('bitstream_id', parseRegister);
  const isDead = bitstreamId !== undefined && isAllOnes(bitstreamId);
  const compatId = engine === undefined ? undefined : addEngine(builder, engine, files, isDead);
  const manager = onBoard(board, survey.managers)[0];
  if (manager !== undefined) addManager(builder, readManager(files.in(manager.path)));
  if (isDead) {
    addIdentity(builder, 'bitstream_id', true);
    addInfo(builder, { stack: 'dfl', compat_id: compatId });
    return { isDead };
  }
  addDflSensors(builder, survey, board, files);
  addUpdates(builder, survey, address);
  const firmware = atMostEvery(survey, `${address}/controller`, hours(1), (each) => readControllerVersion(each, board));
  if (bitstreamId !== undefined) addIdentity(builder, 'bitstream_id', false);
  const bitstream = bitstreamId === undefined ? undefined : hex(bitstreamId);
  addInfo(builder, { stack: 'dfl', compat_id: compatId, bitstream_id: bitstream, bmc_version: firmware });
  return defined({ isDead, compatId, firmware });
}

/** On a dead board all registers are unknown, also those of which a driver shows only a few bits. */
function addEngine(builder: ReportBuilder, engine: Unit, files: DeviceFiles, isDead: boolean): string | undefined {
  const own = files.in(engine.path);
  const masks = readErrorMasks(own);
  addEngineErrors(builder, isDead ? new Map([...masks.keys()].map((register) => [register, 'unknown'])) : masks, readRevision(own));
  if (!isDead) addMemory(builder, own);
  const compatId = readCompatId(own);
  if (compatId === undefined) return undefined;
  addIdentity(builder, 'compat_id', isAllOnes(compatId));
  return isAllOnes(compatId) ? undefined : compatId;
}

export function addIdentity(builder: ReportBuilder, what: string, isLost: boolean): void {
  const message = isLost ? `${what} reads as all ones` : `${what} can be read`;
  builder.find('IdentityLost', isLost, message, { instance: what });
}

/** Reads the interface id of the first region of the engine. */
function readCompatId(files: DeviceFiles): string | undefined {
  const owner = numbered(files, /^dfl-fme-region\.\d+$/)[0];
  const regions = owner === undefined ? undefined : files.below(owner).below('fpga_region');
  const region = regions && numbered(regions, /^region\d+$/)[0];
  return region === undefined ? undefined : regions?.below(region).value('compat_id', parseId);
}

/** Memory interfaces: feature devices with files `inf<n>_cal_fail`. */
function addMemory(builder: ReportBuilder, engine: DeviceFiles): void {
  const banks = new Set<string>();
  for (const name of numbered(engine, /^dfl_dev\.\d+$/)) {
    const files = engine.below(name);
    for (const file of numbered(files, /^inf\d+_cal_fail$/)) {
      const interfaceName = file.slice(0, file.indexOf('_'));
      const bank = banks.has(interfaceName) ? `${name}_${interfaceName}` : interfaceName;
      banks.add(bank);
      const hasFailed = files.value(file, parseFlag);
      if (hasFailed === undefined) continue;
      const message = `memory interface ${bank}: calibration ${hasFailed ? 'failed' : 'did not fail'}`;
      builder.find('MemoryUncalibrated', hasFailed, message, { instance: bank });
    }
  }
}

/** Values of `power_state`. Source: Linux Documentation/ABI/testing/sysfs-platform-dfl-port. */
const POWER_STATES: Readonly<Record<string, string>> = { '0': 'normal', '1': 'ap1', '2': 'ap2', '6': 'ap6' };
const THROTTLE_LEVELS = ['ap1', 'ap2', 'ap6'];
/** Levels that have a latched event. */
const EVENT_LEVELS = ['ap1', 'ap2'] as const;

/** MMIO timeout and malformed packet in the port error table of revision 1. Revision 0 does not define these bits. */
const STRICT_BITS = (1n << 7n) | (1n << 14n);

/** `power_state` has four bits. A port whose registers read as all ones reports this state, and the highest possible port number. */
const ALL_ONES_STATE = 0xfn;

const isDeadPort = (powerState: string | undefined): boolean => parseRegister(powerState ?? '') === ALL_ONES_STATE;

const parsePortNumber = (text: string): string | undefined => (/^\d{1,3}$/.test(text.trim()) ? text.trim() : undefined);

/** Reads one port. Its id is its PCI function and its number within the board. Returns undefined until that number was read once. */
export function readDflPort(survey: Survey, board: DflBoard, port: DflBoard['ports'][number], card: CardRead): DeviceReport | undefined {
  const { memory, problems } = survey;
  const { sys } = survey.host;
  const isOwnFunction = port.address !== board.address;
  const builder = new ReportBuilder();
  const isReadable = isOwnFunction ? addPcie(builder, survey, port.address) === 'readable' : card.presence === 'readable';
  const named = filesOf(survey, port.path, board.address);
  const isDead = isReadable && (card.isDead || isDeadPort(sys.text(named.path('power_state'))));
  const current = isReadable && !isDead ? named.value('id', parsePortNumber) : undefined;
  const number = memory.lastKnown(`${port.address}/${port.name}/id`, current);
  if (number === undefined) {
    const message = isDead ? `/sys/${port.path}: registers read as ones` : `/sys/${port.path}/id cannot be read`;
    if (isReadable) problems.push({ code: 'port-number-unknown', message, device: board.address });
    return undefined;
  }
  const id = `${port.address}-port${number}`;
  if (isReadable) addPort(builder, survey, filesOf(survey, port.path, id), id, { ...card, isDead });
  addCardFault(builder, card, board.address);
  return builder.report(
    defined({
      family: 'fpga',
      id,
      kind: 'port',
      aliases: [port.name],
      parent: board.address,
      ...pciIdentity(readPciFacts(sys, port.address)),
      model: card.report.device.model,
      stack: 'dfl',
      characterDevices: [`/dev/${port.name}`],
    }),
  );
}

function addPort(builder: ReportBuilder, { memory, options }: Survey, files: DeviceFiles, id: string, card: CardRead): void {
  const afu = files.once('afu_id', parseId);
  addAccelerator(builder, afu);
  const accelerator = afu.value === undefined || isAllOnes(afu.value) ? undefined : afu.value;
  if (afu.isUnknown || afu.value !== undefined) builder.add(metrics.reconfigurations, memory.changes(`${id}/afu`, accelerator));
  // Fields that a driver extracts from registers of all ones are no state.
  const ones = 'the registers of the port read as ones';
  if (card.isDead) builder.find('PowerDown', 'unknown', ones);
  else reportPowerState(builder, files.once('power_state', parseRegister));
  for (const instance of EVENT_LEVELS) {
    const isLatched = card.isDead ? 'unknown' : files.value(`${instance}_event`, parseFlag);
    const message = card.isDead ? ones : `${instance}_event is ${isLatched === true ? 'latched' : 'clear'}`;
    builder.find('ThrottleEvent', isLatched, message, { instance });
  }
  addPortErrors(builder, maskOf(files.once('errors/errors', parseRegister)), readRevision(files), options['strict-port-errors']);
  if (accelerator !== undefined) addInfo(builder, { stack: 'dfl', compat_id: card.compatId, accelerator_id: accelerator });
}

/** While a port is held in reset, a read of `afu_id` fails with EBUSY. A port without an accelerator has no such file. Pure. */
export function addAccelerator(builder: ReportBuilder, afu: FileFact<string>): void {
  if (afu.value !== undefined) addIdentity(builder, 'afu_id', isAllOnes(afu.value));
  const isInReset = afu.value === undefined && afu.error === 'EBUSY';
  const message = isInReset ? 'the port is held in reset: afu_id gives EBUSY' : 'the port is not held in reset';
  if (afu.value !== undefined || isInReset) {
    builder.find('Reconfiguring', isInReset, message, { instance: 'port' });
  }
}

/** Ignores a value that is not in the table. Pure. */
export function reportPowerState(builder: ReportBuilder, fact: FileFact<bigint>): void {
  const state = fact.value === undefined ? undefined : POWER_STATES[fact.value.toString()];
  if (state === undefined) {
    if (fact.isUnknown) builder.find('PowerDown', 'unknown', 'power_state cannot be read');
    return;
  }
  builder.addState(metrics.powerState, Object.values(POWER_STATES), state);
  for (const level of THROTTLE_LEVELS) builder.add(metrics.throttled, state === level, { reason: level });
  const isSlow = state === 'ap1' || state === 'ap2';
  // Power or temperature can cause these states. The file does not show which one is the cause.
  const cause = isSlow ? ({ remedy: 'inspect' } as const) : {};
  builder.find('Throttled', isSlow, `power state ${state}`, { instance: 'power_state', ...cause });
  builder.find('PowerDown', state === 'ap6', `power state ${state}`);
}

export function addPortErrors(
  builder: ReportBuilder,
  mask: bigint | 'unknown' | undefined,
  revision: number | undefined,
  isStrict: boolean,
): void {
  if (mask === 'unknown') builder.find('PortError', 'unknown', 'errors cannot be read');
  if (typeof mask !== 'bigint') return;
  addErrorBits(builder, 'port_errors', revision, mask);
  const names = bitNames('port_errors', revision, mask).join(', ');
  const isFatal = isStrict && revision !== 0 && (mask & STRICT_BITS) !== 0n;
  builder.find('PortError', mask !== 0n, `errors is ${hex(mask)}${names && `: ${names}`}`, isFatal ? { severity: 'fatal' } : {});
}

/** A fatal fault of the board affects its ports. While the board cannot be judged, the fault is unknown. */
function addCardFault(builder: ReportBuilder, { faults, isDoubtful, report }: CardRead, causedBy: string): void {
  // The policy judges the growth of counters, so the port also needs the board's counter.
  builder.findings.push(...(report.read?.findings ?? []).filter(({ type }) => type === 'AerFatal'));
  if (faults.length > 0) builder.find('CardFault', true, `the board has ${faults.join(', ')}`, { causedBy });
  else if (isDoubtful) builder.find('CardFault', 'unknown', 'the board does not report whether it has a fault');
  else builder.find('CardFault', false, 'the board has no fault that takes it out');
}
