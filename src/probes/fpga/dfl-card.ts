import type { DeviceReport } from '../../model/collection.ts';
import { hours } from '../../model/duration.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { possible, type SensorKind } from '../kit/hwmon.ts';
import { notCredible } from '../kit/temperature.ts';
import { type DflBoard, modelOf, onBoard, pciIdentity, readPciFacts, type Unit } from './board.ts';
import { addEngineErrors, readErrorMasks, readRevision } from './dfl-registers.ts';
import { addDflSensors, readControllerVersion } from './dfl-sensors.ts';
import { addBridges, addInfo, addManager, readManager } from './manager.ts';
import { metrics } from './metrics.ts';
import { addPcie, addUpdates, type PciPresence, ReportBuilder } from './report-builder.ts';
import { atMostEvery, filesOf, numbered, type Survey } from './survey.ts';
import { hex, isAllOnes, parseFlag, parseId, parseRegister } from './values.ts';

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
  const loaded = presence === 'readable' ? addDriverFacts(builder, survey, board, files) : { isDead: false };
  const pci = readPciFacts(sys, board.address);
  const firmware = loaded.controllerVersion;
  const device = {
    family: 'fpga',
    id: board.address,
    kind: 'fpga',
    aliases: aliasesOf(board),
    ...pciIdentity(pci),
    ...(modelOf(pci) === undefined && { model: 'DFL board' }),
    ...(firmware !== undefined && { firmware }),
    stack: board.layout.stack,
    characterDevices: board.ports.map(({ name }) => `/dev/${name}`),
  };
  const faults = builder.fatalConditions(true);
  const isCleared = builder.findings.some(({ type, status }) => type === 'FatalError' && status === false);
  const isDoubtful = presence === 'asleep' || builder.fatalConditions('unknown').length > 0 || (board.engines.length > 0 && !isCleared);
  const { compatId, isDead } = loaded;
  return { report: builder.report(device), presence, faults, isDoubtful, isDead, ...(compatId !== undefined && { compatId }) };
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
  readonly controllerVersion?: string;
}

function addDriverFacts(builder: ReportBuilder, survey: Survey, board: DflBoard, files: DeviceFiles): Loaded {
  const { layout, address } = board;
  const engine = board.engines[0];
  // The id has 64 bits, so it stays a bigint.
  const bitstreamId = engine === undefined ? undefined : files.in(engine.path).value('bitstream_id', parseRegister);
  const isDead = bitstreamId !== undefined && isAllOnes(bitstreamId);
  const compatId = engine === undefined ? undefined : addEngine(builder, board, engine, files, isDead);
  const manager = onBoard(board, survey.managers)[0];
  if (manager !== undefined) addManager(builder, readManager(files.in(manager.path)));
  addBridges(builder, survey, onBoard(board, survey.bridges), address);
  if (isDead) {
    addIdentity(builder, 'bitstream_id', true);
    addInfo(builder, { stack: layout.stack, compat_id: compatId });
    return { isDead };
  }
  addDflSensors(builder, survey, board, files);
  if (layout.stack === 'opae' && engine !== undefined) addOpaeSensors(builder, survey, address, files.in(engine.path));
  addUpdates(builder, survey, address);
  const controllerVersion = atMostEvery(survey, `${address}/controller`, hours(1), (each) => readControllerVersion(each, board));
  if (bitstreamId !== undefined) addIdentity(builder, 'bitstream_id', false);
  const bitstream = bitstreamId === undefined ? undefined : hex(bitstreamId);
  addInfo(builder, { stack: layout.stack, compat_id: compatId, bitstream_id: bitstream, bmc_version: controllerVersion });
  return { isDead, ...(compatId !== undefined && { compatId }), ...(controllerVersion !== undefined && { controllerVersion }) };
}

/** On a dead board all registers are unknown, also those of which a driver shows only a few bits. */
function addEngine(builder: ReportBuilder, board: DflBoard, engine: Unit, files: DeviceFiles, isDead: boolean): string | undefined {
  const own = files.in(engine.path);
  const masks = readErrorMasks(own, board.layout.registers);
  addEngineErrors(builder, isDead ? new Map([...masks.keys()].map((register) => [register, 'unknown'])) : masks, readRevision(own));
  if (!isDead) addMemory(builder, own);
  const compatId = readCompatId(own, board.layout.compatId);
  if (compatId === undefined) return undefined;
  addIdentity(builder, 'compat_id', isAllOnes(compatId));
  return isAllOnes(compatId) ? undefined : compatId;
}

export function addIdentity(builder: ReportBuilder, what: string, isLost: boolean): void {
  const message = isLost ? `${what} reads as all ones` : `${what} can be read`;
  builder.find('IdentityLost', isLost, isLost ? 'AllOnes' : 'Readable', message, { instance: what });
}

/** Reads the file that the patterns lead to. In each directory it follows the first match. */
function readCompatId(files: DeviceFiles, path: readonly string[]): string | undefined {
  let current = files;
  for (const pattern of path.slice(0, -1)) {
    const name = pattern.includes('*')
      ? numbered(current, new RegExp(`^${pattern.replaceAll('.', '\\.').replace('*', '\\d+')}$`))[0]
      : pattern;
    if (name === undefined) return undefined;
    current = current.below(name);
  }
  return current.value(path.at(-1) as string, parseId);
}

/** Memory interfaces: feature devices with files `inf<n>_init_done` and `inf<n>_cal_fail`. */
function addMemory(builder: ReportBuilder, engine: DeviceFiles): void {
  const banks = new Set<string>();
  for (const name of numbered(engine, /^dfl_dev\.\d+$/)) {
    const files = engine.below(name);
    for (const file of numbered(files, /^inf\d+_cal_fail$/)) {
      const interfaceName = file.slice(0, file.indexOf('_'));
      const bank = banks.has(interfaceName) ? `${name}_${interfaceName}` : interfaceName;
      banks.add(bank);
      const hasFailed = files.value(file, parseFlag);
      const isDone = files.value(`${interfaceName}_init_done`, parseFlag);
      if (hasFailed === undefined) continue;
      builder.add(metrics.memoryCalibrated, !hasFailed && isDone !== false, { bank });
      const message = `memory interface ${bank}: calibration ${hasFailed ? 'failed' : 'did not fail'}`;
      builder.find('MemoryUncalibrated', hasFailed, hasFailed ? 'CalibrationFailed' : 'Calibrated', message, { instance: bank });
    }
  }
}

const TEMPERATURE_LIMITS = { threshold2: 'crit', threshold_trip: 'emergency' } as const;
const POWER_LIMITS = { threshold1: 'max', threshold2: 'crit' } as const;

/** Reads the sensor files of OPAE's own driver. Temperatures are whole °C in decimal, powers whole watts in hexadecimal; 0 is no value. */
function addOpaeSensors(builder: ReportBuilder, { memory, problems }: Survey, device: string, engine: DeviceFiles): void {
  const thermal = engine.below('thermal_mgmt');
  const power = engine.below('power_mgmt');
  const celsius = (file: string): number | undefined => measuredBy(thermal, 'temp', file);
  const watts = (file: string): number | undefined => measuredBy(power, 'power', file);
  const now = celsius('temperature');
  builder.add(metrics.temperature, now, { sensor: 'fpga' });
  const threshold = celsius('threshold1');
  builder.add(metrics.temperatureLimit, threshold, { sensor: 'fpga', limit: 'max' });
  for (const [file, limit] of Object.entries(TEMPERATURE_LIMITS))
    builder.add(metrics.temperatureLimit, celsius(file), { sensor: 'fpga', limit });
  builder.add(metrics.power, watts('consumed'), { sensor: 'fpga' });
  for (const [file, limit] of Object.entries(POWER_LIMITS)) builder.add(metrics.powerLimit, watts(file), { limit });
  const isReached = thermal.value('threshold1_reached', parseFlag);
  if (isReached === undefined) return;
  if (now !== undefined && !memory.limits.has(`${device}/threshold1`, now, threshold ?? 0, isReached)) {
    problems.push({ code: 'limit-not-credible', message: notCredible('fpga', threshold ?? 0), device });
    return;
  }
  builder.add(metrics.throttled, isReached, { reason: 'temperature_max' });
  const message = `temperature threshold 1 ${isReached ? 'reached' : 'not reached'}`;
  builder.find('Throttled', isReached, isReached ? 'TemperatureAlarm' : 'FullSpeed', message, { instance: 'temperature_max' });
}

const measuredBy = (files: DeviceFiles, kind: SensorKind, file: string): number | undefined =>
  possible(files, file, kind, Number(files.value(file, parseRegister) ?? 0n) || undefined);
