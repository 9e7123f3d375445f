import type { DeviceReport } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { type PciFunction, readPciFunction } from '../kit/pcie/function.ts';
import { addPcie, ReportBuilder } from './board.ts';
import { metrics } from './metrics.ts';
import { isAllOnes, parseId } from './registers.ts';
import { filesOf, type Placed, placedIn, REGIONS, type Survey } from './survey.ts';

/** States of a manager. Source: Linux drivers/fpga/fpga-mgr.c, `state_str`. */
export const MANAGER_STATES = [
  'unknown',
  'power off',
  'power up',
  'reset',
  'firmware request',
  'firmware request error',
  'parse header',
  'parse header error',
  'write init',
  'write init error',
  'write',
  'write error',
  'write complete',
  'write complete error',
  'operating',
] as const;

const stateLabel = (state: string): string => state.replaceAll(' ', '_');
const STATE_LABELS = MANAGER_STATES.map(stateLabel);

/** Lines of `status` that indicate a fault of the hardware, not of the image. */
const HARDWARE_LINES: ReadonlySet<string> = new Set(['reconfig CRC error', 'reconfig fifo overflow error']);

/** Result of one read of a manager. */
export interface ManagerSample {
  readonly name?: string;
  /** State as the kernel prints it. An unknown state of a newer kernel is kept. */
  readonly state?: string;
  /** Errors of the last attempt, one per line. `unknown`: they cannot be read now. Without the file the driver tells none. */
  readonly status: readonly string[] | 'unknown';
}

export function parseStatus(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

export function readManager(files: DeviceFiles): ManagerSample {
  const { value, isUnknown } = files.once('status', parseStatus);
  return defined({ name: files.text('name'), state: files.text('state'), status: value ?? (isUnknown ? 'unknown' : []) });
}

/** Adds the state as readings and findings. Pure. */
export function addManager(builder: ReportBuilder, { state, status: read }: ManagerSample): void {
  const says = `the FPGA manager says "${state}"`;
  if (state !== undefined) {
    builder.addState(metrics.managerState, STATE_LABELS, stateLabel(state));
    const isBusy = /^(?:firmware request|parse header|write|write init|write complete)$/.test(state);
    builder.find('Reconfiguring', isBusy, says, { instance: 'manager', ...(isBusy && { reason: 'Programming' }) });
    builder.find('ManagerDown', ['power off', 'reset'].includes(state), says, state === 'reset' ? { reason: 'InReset' } : {});
  }
  const status = read === 'unknown' ? [] : read;
  const failed = `programming failed: ${status.join(', ')}`;
  if (status.some((line) => HARDWARE_LINES.has(line)))
    builder.find('ProgramFailed', true, failed, { reason: 'HardwareRefused', severity: 'fatal', remedy: 'reset' });
  else if (status.length > 0) builder.find('ProgramFailed', true, failed, { reason: 'StatusReported' });
  else if (state?.endsWith(' error') === true) builder.find('ProgramFailed', true, `programming ended with "${state}"`);
  else if (read === 'unknown') {
    const told = { reason: 'StatusReported', severity: 'fatal' } as const;
    builder.find('ProgramFailed', 'unknown', 'the status of the FPGA manager cannot be read', told);
  } else if (state !== undefined) builder.find('ProgramFailed', false, says);
}

/**
 * Reads FPGAs that only a manager shows. FPGAs in SoCs and on serial buses get the name of the device that registered the manager. PCI
 * boards without DFL or XRT get their address. `taken` holds the addresses that are already reported.
 */
export function readManagedBoards(survey: Survey, taken: ReadonlySet<string>): readonly DeviceReport[] {
  const left = survey.managers.filter(({ address }) => address === undefined || !taken.has(address));
  const isOnlyEmbedded = left.filter(({ address }) => address === undefined).length === 1;
  const seen = new Set<string>();
  return left.flatMap((manager) => {
    const id = manager.address ?? embeddedId(manager);
    if (seen.has(id)) return [];
    seen.add(id);
    return [readManaged(survey, manager, id, isOnlyEmbedded)];
  });
}

/** Returns the name of the platform device. `owner` is `class` or `virtual` when the manager has no parent. */
function embeddedId({ owner, name }: Placed): string {
  return owner === undefined || owner === 'class' || owner === 'virtual' ? name : owner;
}

function readManaged(survey: Survey, manager: Placed, id: string, isOnlyEmbedded: boolean): DeviceReport {
  const { sys } = survey.host;
  const files = filesOf(survey, manager.path, id);
  const builder = new ReportBuilder();
  const isReadable = manager.address === undefined || addPcie(builder, survey, manager.address) === 'readable';
  const sample: ManagerSample = isReadable ? readManager(files) : { status: [] };
  if (isReadable) addManager(builder, sample);
  const onBoard = (other: Placed): boolean => other.address === manager.address && (manager.address !== undefined || isOnlyEmbedded);
  const compatId = isReadable ? regionId(survey, onBoard, id) : undefined;
  if (compatId !== undefined) addInfo(builder, { stack: 'manager', compat_id: compatId });
  const pci: Partial<PciFunction> = manager.address === undefined ? {} : readPciFunction(sys, manager.address);
  const device: Device = defined({
    family: 'fpga',
    id,
    kind: 'fpga',
    aliases: [manager.name],
    model: sample.name,
    pciAddress: pci.pciAddress,
    driver: pci.driver,
    numaNode: pci.numaNode,
    stack: 'manager',
  });
  return builder.report(device);
}

function regionId(survey: Survey, onBoard: (region: Placed) => boolean, device: string): string | undefined {
  for (const region of placedIn(survey.host.sys, REGIONS).filter(onBoard)) {
    const id = filesOf(survey, region.path, device).value('compat_id', parseId);
    if (id !== undefined && !isAllOnes(id)) return id;
  }
  return undefined;
}

/** Adds the info metric with all its labels. A label is empty when its value is unknown. */
export function addInfo(builder: ReportBuilder, known: Readonly<Record<string, string | undefined>>): void {
  builder.add(metrics.info, 1, Object.fromEntries(metrics.info.labels.map((label) => [label, known[label] ?? ''])));
}
