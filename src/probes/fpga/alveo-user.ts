import { defined } from '../../model/defined.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { addMemoryBanks } from './alveo-memory.ts';
import { metrics } from './metrics.ts';
import { numbered } from './name-order.ts';
import type { ReportBuilder } from './report-builder.ts';
import { atMostEvery, filesOf, type Survey } from './survey.ts';
import { parseFlag, parseId, parseRegister } from './values.ts';
import { boardOfShell, type KdsUse, parseBootFlags, parseClocks, parseKdsStat, parseLoaded, parseMemStat } from './xrt-text.ts';

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
  const reason = isResetting ? 'ResetRunning' : isOffline ? 'Offline' : 'Idle';
  if (isResetting || offline !== undefined)
    builder.find('Reconfiguring', isResetting || isOffline, reason, offlineMessage(isResetting, isOffline), { instance: 'user' });
  if (isResetting) return { pids: [], isResetting };
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

function offlineMessage(isResetting: boolean, isOffline: boolean): string {
  if (isResetting) return 'the files of the driver are away, as during a reset';
  return isOffline ? 'the driver says that the board is offline' : 'the board is online';
}

function addState(builder: ReportBuilder, files: DeviceFiles, ready: bigint | undefined, isLoaded: boolean): void {
  if (ready !== undefined) {
    const isReady = ready !== 0n;
    builder.add(metrics.ready, isReady);
    const message = isReady ? 'the management side answers' : 'the management side does not answer';
    builder.find('NotReady', !isReady, isReady ? 'Ready' : 'PeerNotReady', message);
  }
  const isBad = files.value('device_bad_state', parseFlag);
  if (isBad !== undefined) builder.find('BadState', isBad, isBad ? 'SchedulerGaveUp' : 'Good', `device_bad_state is ${Number(isBad)}`);
  addCalibration(builder, files.value('mig_calibration', parseRegister), ready, isLoaded);
  const boot = files.value('vmr_status', parseBootFlags);
  if (boot !== undefined && boot.size > 0) addBoot(builder, boot);
}

/** Some shells calibrate at the first load. Before that load, and without a ready peer, 0 has no meaning. */
function addCalibration(builder: ReportBuilder, calibration: bigint | undefined, ready: bigint | undefined, isLoaded: boolean): void {
  if (calibration === undefined || ready === undefined || ready === 0n) return;
  const isDone = calibration !== 0n;
  if (!isDone && !isLoaded) return;
  builder.add(metrics.memoryCalibrated, isDone, { bank: 'all' });
  builder.find('MemoryUncalibrated', !isDone, isDone ? 'Calibrated' : 'CalibrationFailed', `mig_calibration is ${calibration}`, {
    instance: 'all',
  });
}

function addBoot(builder: ReportBuilder, boot: ReadonlyMap<string, boolean>): void {
  if (boot.get('BOOT_ON_RECOVERY') === true) {
    builder.find('RecoveryImage', true, 'RecoveryBooted', 'the controller booted the recovery image', { instance: 'vmr' });
  } else if (boot.get('BOOT_ON_BACKUP') === true) {
    builder.find('RecoveryImage', true, 'BackupBooted', 'the controller booted the backup image', {
      instance: 'vmr',
      severity: 'degraded',
    });
  } else builder.find('RecoveryImage', false, 'DefaultBooted', 'the controller booted its own image', { instance: 'vmr' });
}

function addUse(builder: ReportBuilder, kds: KdsUse, files: DeviceFiles): void {
  builder.add(metrics.executions, kds.executions);
  builder.add(metrics.outstanding, kds.outstanding);
  builder.add(metrics.clients, kds.clients);
  const memory = files.value('memstat_raw', parseMemStat);
  builder.add(metrics.memoryUsed, memory?.bytes);
  builder.add(metrics.memoryBuffers, memory?.buffers);
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
