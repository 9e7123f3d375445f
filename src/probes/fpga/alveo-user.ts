import { defined } from '../../model/defined.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { raiseGrowth } from '../kit/finding.ts';
import { parseCount, plainValue } from '../kit/text.ts';
import type { ReportBuilder } from './board.ts';
import { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { parseFlag, parseId, parseRegister } from './registers.ts';
import { atMostEvery, filesOf, numbered, type Survey } from './survey.ts';

/** Use of a board by the programs of the node. */
interface KdsUse {
  readonly executions?: number | bigint;
  readonly clients?: number | bigint;
  /** In the host's PID namespace. */
  readonly pids: readonly number[];
}

/** Parses `kdsstat`: lines of name and number, then `client pid:` and one number per line. Undefined when no value is known. */
export function parseKdsStat(text: string): KdsUse | undefined {
  const field = (name: string): number | bigint | undefined => parseCount(new RegExp(`^${name}:\\s*(\\d+)\\s*$`, 'm').exec(text)?.[1]);
  const executions = field('total execs');
  const clients = field('contexts');
  if (executions === undefined && clients === undefined) return undefined;
  const tail = /^client pid:[^\S\n]*\n([\s\S]*)$/m.exec(text)?.[1] ?? '';
  const pids = [...tail.matchAll(/^\s*(\d{1,10})\s*$/gm)].map((match) => Number(match[1]));
  return defined({ executions, clients, pids: [...new Set(pids)].sort((a, b) => a - b) });
}

/**
 * Parses the used bytes of `memstat_raw`: one line `bytes buffers 0` per bank, then a line of -22 (printed signed or unsigned), then lines per kind of
 * buffer. The last lines count the same bytes again, so they are ignored.
 */
export function parseMemStat(text: string): number | bigint | undefined {
  let bytes = 0n;
  let banks = 0;
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields[1]?.startsWith('-') || fields[0]?.startsWith('-')) break;
    if (fields.length < 2 || !fields.slice(0, 2).every((field) => /^\d{1,20}$/.test(field))) continue;
    bytes += BigInt(fields[0] as string);
    banks += 1;
  }
  return banks === 0 ? undefined : plainValue(bytes);
}

/** Parses `clock_freqs`, one line in MHz per clock. Returns hertz. 0 means that the shell lacks the clock and gives undefined. */
export function parseClocks(text: string): readonly (number | undefined)[] | undefined {
  const lines = text.trim().split('\n');
  if (!lines.every((line) => /^\s*\d{1,6}\s*$/.test(line))) return undefined;
  return lines.map((line) => (Number(line) === 0 ? undefined : Number(line) * 1_000_000));
}

/** Returns the board in the name of a shell: `u250` for `xilinx_u250_gen3x16_xdma_shell_4_1`. */
export function boardOfShell(vbnv: string): string | undefined {
  const board = vbnv.trim().split('_')[1];
  return board === undefined || board === '' ? undefined : board;
}

/** Parses `xclbinuuid`: one UUID per slot; the nil UUID is an empty slot. Undefined when nothing is loaded. */
export function parseLoaded(text: string): string | undefined {
  const ids = text.split('\n').map((line) => line.trim().toLowerCase());
  const loaded = ids.filter((id) => /^[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/.test(id) && !/^[0-]+$/.test(id));
  return loaded.length === 0 ? undefined : loaded.join(',');
}

/** Parses `vmr_status`: `KEY:0` or `KEY:1` on each line. */
export function parseBootFlags(text: string): ReadonlyMap<string, boolean> {
  return new Map([...text.matchAll(/^\s*(\w+)\s*:\s*([01])\s*$/gm)].map((match) => [match[1] as string, match[2] === '1']));
}

/** Bit 0 of `ecc_status` means uncorrectable, bit 1 correctable. Source: XRT, subdev/mig.c. */
const UNCORRECTABLE = 1n;

/**
 * Adds the error counters of the memory banks. `side` is the user function (`u`) or the management function (`m`). Values of `u` come
 * from a cache of the driver, which the probe does not refresh. A bank without ECC has no counters.
 */
export function addMemoryBanks(builder: ReportBuilder, files: DeviceFiles, side: 'u' | 'm'): void {
  const names = new Set<string>();
  for (const directory of numbered(files, new RegExp(`^mig\\.${side}\\.\\d+$`))) {
    const bank = files.below(directory);
    if (bank.value('ecc_enabled', parseFlag) !== true) continue;
    const label = bank.text('name');
    const name = label === undefined || names.has(label) ? directory.slice('mig.u.'.length) : label;
    names.add(name);
    addBank(builder, name, bank);
  }
}

function addBank(builder: ReportBuilder, name: string, bank: DeviceFiles): void {
  const correctable = bank.value('ecc_ce_cnt', parseCount);
  const uncorrectable = bank.value('ecc_ue_cnt', parseCount);
  builder.add(metrics.errors, correctable, { kind: 'ecc_correctable', bank: name });
  builder.add(metrics.errors, uncorrectable, { kind: 'ecc_uncorrectable', bank: name });
  builder.findings.push(...raiseGrowth(conditions.EccCorrectable, correctable, `${name}: ecc_ce_cnt ${correctable}`, name));
  const status = bank.once('ecc_status', parseRegister);
  const message = `${name}: ecc_ue_cnt ${uncorrectable ?? 'unknown'}`;
  const instance = { instance: name };
  if (status.isUnknown) builder.find('EccUncorrectable', 'unknown', `${name}: ecc_status cannot be read`, instance);
  else if (status.value !== undefined) builder.find('EccUncorrectable', (status.value & UNCORRECTABLE) !== 0n, message, instance);
  if (uncorrectable === undefined) return;
  // Errors before the first read may be old, so only further errors count. Flag and counter are separate instances.
  const counted = { type: 'EccUncorrectable', instance: `${name}/count`, reason: 'CounterGrew', message };
  builder.findings.push({ ...counted, level: -Number(uncorrectable) });
}

/** Data of the user function that the device needs. */
export interface UserRead {
  readonly model?: string;
  readonly serial?: string;
  /** Name of the shell, for example `xilinx_u250_gen3x16_xdma_shell_4_1`. */
  readonly shell?: string;
  readonly interfaceId?: string;
  /** Ids of the loaded accelerators. */
  readonly loaded?: string;
  readonly renderNode?: string;
  readonly pids: readonly number[];
  readonly isResetting?: true;
}

/**
 * Reads the files of the user function. It never opens `mig_cache_update` (it queries firmware), the firewall's files (each read sends
 * a message to the management function), `xocl_errors` (a ring without version), nor `shutdown` and other writable files.
 */
export function addUserFunction(builder: ReportBuilder, survey: Survey, id: string, files: DeviceFiles): UserRead {
  const ready = files.once('ready', parseRegister);
  const offline = files.value('dev_offline', parseOffline);
  // During a reset only the flag file exists.
  const isResetting = ready.error === 'ENOENT' && offline === undefined;
  const isOffline = offline === 1;
  const instance = 'user';
  if (isResetting) {
    builder.find('Reconfiguring', true, 'the files of the driver are away, as during a reset', { instance, reason: 'ResetRunning' });
    return { pids: [], isResetting };
  }
  const message = isOffline ? 'the driver says that the board is offline' : 'the board is online';
  if (offline !== undefined) builder.find('Reconfiguring', isOffline, message, { instance, ...(isOffline && { reason: 'Offline' }) });
  const loaded = files.value('xclbinuuid', (text) => ({ id: parseLoaded(text) }))?.id;
  builder.add(metrics.reconfigurations, survey.memory.changes(`${id}/loaded`, loaded));
  if (!isOffline) addState(builder, files, ready.value, loaded !== undefined);
  const kds = files.value('kdsstat', parseKdsStat) ?? { pids: [] };
  addUse(builder, kds, files);
  addClocks(builder, survey, id, files);
  addMemoryBanks(builder, files, 'u');
  return { ...readIdentity(files), pids: kds.pids, ...(loaded !== undefined && { loaded }) };
}

/** Parses 0 or 1. A failed query prints its errno as a number, which is no state. */
function parseOffline(text: string): number | undefined {
  const trimmed = text.trim();
  return /^-?\d{1,6}$/.test(trimmed) ? Number(trimmed) : undefined;
}

function addState(builder: ReportBuilder, files: DeviceFiles, ready: bigint | undefined, isLoaded: boolean): void {
  if (ready !== undefined) {
    const isReady = ready !== 0n;
    builder.find('NotReady', !isReady, `the management side ${isReady ? 'answers' : 'does not answer'}`);
  }
  const isBad = files.value('device_bad_state', parseFlag);
  builder.find('BadState', isBad, `device_bad_state is ${Number(isBad)}`);
  addCalibration(builder, files.value('mig_calibration', parseRegister), ready, isLoaded);
  const boot = files.value('vmr_status', parseBootFlags);
  if (boot === undefined || boot.size === 0) return;
  const instance = 'vmr';
  if (boot.get('BOOT_ON_RECOVERY') === true) builder.find('RecoveryImage', true, 'the controller booted the recovery image', { instance });
  else if (boot.get('BOOT_ON_BACKUP') !== true) builder.find('RecoveryImage', false, 'the controller booted its own image', { instance });
  else {
    const told = { instance, reason: 'BackupBooted', severity: 'degraded' } as const;
    builder.find('RecoveryImage', true, 'the controller booted the backup image', told);
  }
}

/** Some shells calibrate at the first load. Before that load, and without a ready peer, 0 has no meaning. */
function addCalibration(builder: ReportBuilder, calibration: bigint | undefined, ready: bigint | undefined, isLoaded: boolean): void {
  if (calibration === undefined || ready === undefined || ready === 0n) return;
  const isDone = calibration !== 0n;
  if (!isDone && !isLoaded) return;
  builder.find('MemoryUncalibrated', !isDone, `mig_calibration is ${calibration}`, { instance: 'all' });
}

function addUse(builder: ReportBuilder, kds: KdsUse, files: DeviceFiles): void {
  builder.add(metrics.executions, kds.executions);
  builder.add(metrics.clients, kds.clients);
  builder.add(metrics.memoryUsed, files.value('memstat_raw', parseMemStat));
}

/** Adds the clocks. Their interval is long, because a read can write a line to the kernel log when a clock is off its target. */
function addClocks(builder: ReportBuilder, survey: Survey, id: string, files: DeviceFiles): void {
  const clocks = atMostEvery(survey, `${id}/clocks`, survey.options['sensor-interval'], (each) => {
    const icap = numbered(files, /^icap\.u\.\d+$/)[0];
    return icap === undefined ? undefined : filesOf(each, files.path(icap), id).value('clock_freqs', parseClocks);
  });
  builder.asOf(survey.memory.readMs(`${id}/clocks`), () => {
    for (const [index, hertz] of (clocks ?? []).entries()) builder.add(metrics.clock, hertz, { clock: String(index) });
  });
}

function readIdentity(files: DeviceFiles): Omit<UserRead, 'pids' | 'loaded' | 'isResetting'> {
  const rom = numbered(files, /^rom\.u\.\d+$/)[0];
  const shell = rom === undefined ? undefined : files.text(`${rom}/VBNV`);
  const model = files.text('board_name') ?? (shell === undefined ? undefined : boardOfShell(shell));
  const serial = numbered(files, /^xmc\.u\.\d+$/)
    .map((name) => files.text(`${name}/serial_num`))
    .find((text) => text !== undefined);
  const renderNode = numbered(files.below('drm'), /^renderD\d+$/)[0];
  const interfaceId = files.value('interface_uuids', (text) => parseId(text.trim().split('\n')[0] ?? ''));
  return defined({ model, serial, shell, renderNode, interfaceId });
}
