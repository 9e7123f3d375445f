import {
  combinedRecovery,
  type EccCount,
  type EccSeverity,
  FABRIC_HEALTHS,
  FABRIC_STATES,
  type FabricSample,
  type Failure,
  type GpuIdentity,
  type GpuSample,
  type MigSample,
  type ProcessList,
  type ProcessSample,
  RECOVERY_ACTIONS,
  type Recovery,
  type RecoveryAction,
  type Unread,
} from '../sample.ts';
import { GPU_KEYS, INSTANCE_KEYS, VALUES, type ValueKey, type Values } from '../values.ts';
import { asBoolean, type Cell, cellAt, childrenOf, type Element, numberValue, textAt, wordAt } from './document.ts';

/** Returns the sample of one `<gpu>` element, without the names of its instances. */
export function gpuSampleOf(gpu: Element): GpuSample {
  const unread: Unread[] = [];
  return {
    identity: identityOf(gpu),
    values: { ...valuesOf(gpu, GPU_KEYS, unread), performanceState: performanceState(gpu, unread), isLicensed: isLicensed(gpu) },
    fabric: fabricOf(gpu, unread),
    recovery: recovery(gpu, unread),
    // A whole document has a line behind it for each damaged infoROM.
    isInforomSound: true,
    ecc: { volatile: eccCounts(gpu, 'ecc_errors/volatile', unread), lifetime: eccCounts(gpu, 'ecc_errors/aggregate', unread) },
    processes: processesOf(gpu),
    instances: instancesOf(gpu, unread),
    unread,
  };
}

/** Reads values. When a key has several paths, the first path with a value counts. */
function valuesOf(element: Element, keys: readonly ValueKey[], unread: Unread[]): Values {
  const values: Partial<Record<ValueKey, number | bigint | boolean>> = {};
  for (const key of keys) {
    if (key === 'performanceState' || key === 'isLicensed') continue;
    const { quantity, paths } = VALUES[key];
    const cells = paths.map((path) => ({ path, cell: cellAt(element, path) }));
    const parsed = cells.map(({ cell }) => (quantity === 'flag' ? asBoolean(cell) : numberValue(cell, quantity)));
    const value = parsed.find((each) => each !== undefined);
    const unparsed = cells.find(({ cell }) => cell.kind !== 'absent' && !isNone(cell));
    if (value !== undefined) values[key] = value;
    else if (unparsed !== undefined) unread.push(unreadAt(element, key, unparsed.path));
  }
  return values as Values;
}

function unreadAt(element: Element, value: Unread['value'], name: string): Unread {
  const cell = cellAt(element, name);
  return { value, name, text: textAt(element, name) ?? '', kind: isFailure(cell) ? cell.kind : 'unknown' };
}

const isFailure = (cell: Cell): cell is Extract<Cell, { readonly kind: Failure }> =>
  cell.kind === 'lost' || cell.kind === 'reset-required' || cell.kind === 'error';

/** `None` means "no value" for a number or a flag. For a state it is a value. */
const isNone = (cell: Cell): boolean => cell.kind === 'text' && cell.value.toLowerCase() === 'none';

/** Reads the texts that identify the board. */
function identityOf(gpu: Element): GpuIdentity {
  return {
    busId: typeof gpu['@id'] === 'string' ? gpu['@id'] : wordAt(gpu, 'pci/pci_bus_id'),
    pciDeviceId: wordAt(gpu, 'pci/pci_device_id'),
    uuid: wordAt(gpu, 'uuid'),
    name: wordAt(gpu, 'product_name'),
    serial: wordAt(gpu, 'serial'),
    minor: wordAt(gpu, 'minor_number'),
    moduleId: wordAt(gpu, 'platformInfo/module_id', 'gpu_module_id'),
    brand: wordAt(gpu, 'product_brand'),
    architecture: wordAt(gpu, 'product_architecture'),
    vbios: wordAt(gpu, 'vbios_version'),
    boardPart: wordAt(gpu, 'board_part_number'),
    gpuPart: wordAt(gpu, 'gpu_part_number'),
    computeMode: wordAt(gpu, 'compute_mode'),
    gspFirmware: wordAt(gpu, 'gsp_firmware_version'),
    chassis: wordAt(gpu, 'platformInfo/chassis_serial_number'),
    slot: wordAt(gpu, 'platformInfo/slot_number'),
    tray: wordAt(gpu, 'platformInfo/tray_index'),
    host: wordAt(gpu, 'platformInfo/host_id'),
  };
}

/** The licence of a vGPU. Without one, boards on the host print a licence too, which they do not need. */
function isLicensed(gpu: Element): boolean | undefined {
  if (textAt(gpu, 'gpu_virtualization_mode/virtualization_mode') !== 'VGPU') return undefined;
  const texts = VALUES.isLicensed.paths.map((path) => textAt(gpu, path) ?? '');
  return texts.some((text) => /^licensed\b/i.test(text)) || (texts.some((text) => /^unlicensed\b/i.test(text)) ? false : undefined);
}

/** Parses `P0` to `P15`. Drivers without a state print `Unknown`. */
function performanceState(gpu: Element, unread: Unread[]): number | undefined {
  const cell = cellAt(gpu, 'performance_state');
  if (isFailure(cell) && cell.kind !== 'lost') unread.push(unreadAt(gpu, 'performanceState', 'performance_state'));
  const number = cell.kind === 'text' ? /^P(\d{1,2})$/.exec(cell.value)?.[1] : undefined;
  return number === undefined || Number(number) > 15 ? undefined : Number(number);
}

function fabricOf(gpu: Element, unread: Unread[]): FabricSample {
  const state = stateAt(gpu, 'fabric/state', FABRIC_STATES, unread);
  const status = textAt(gpu, 'fabric/status');
  const hasFailed = state === 'completed' && !/^(?:success|n\/a|)$/i.test(status ?? '');
  const isIn = state === 'completed' && !hasFailed;
  const [clique, cluster] = isIn ? [wordAt(gpu, 'fabric/cliqueId'), wordAt(gpu, 'fabric/clusterUuid')] : [];
  return { state, status, hasFailed, health: stateAt(gpu, 'fabric/health/summary', FABRIC_HEALTHS, unread), clique, cluster };
}

/** Reads one of several states, which the driver prints with spaces and capital letters. */
function stateAt<T extends string>(gpu: Element, path: string, states: readonly T[], unread: Unread[]): T | undefined {
  const cell = cellAt(gpu, path);
  const word = cell.kind === 'text' ? cell.value.toLowerCase().replaceAll(' ', '_') : undefined;
  const known = states.find((each) => each === word);
  if (known === undefined && cell.kind !== 'absent') unread.push(unreadAt(gpu, 'fabric', path));
  return known;
}

const ACTION = 'gpu_recovery_action';
const FLAGS = ['gpu_reset_status/reset_required', 'gpu_reset_status/drain_and_reset_recommended'] as const;

/**
 * Reads the recovery action. The newest drivers print an action. The 535 to 570 branches print two flags instead. The driver asks for nothing
 * only when none of them failed. In place of any of them, it can print that the GPU requires a reset.
 */
function recovery(gpu: Element, unread: Unread[]): Recovery | undefined {
  const cell = cellAt(gpu, ACTION);
  const printed = cell.kind === 'text' ? { word: cell.value, action: recoveryActionOf(cell.value.toLowerCase()) } : undefined;
  const flags = FLAGS.map((path) => cellAt(gpu, path));
  const [reset, drain] = flags.map(asBoolean);
  const isActionUnread = cell.kind !== 'absent' && printed?.action === undefined;
  const failed = [...(isActionUnread ? [ACTION] : []), ...FLAGS.filter((path) => isUnreadFlag(cellAt(gpu, path)))];
  unread.push(...failed.map((path) => unreadAt(gpu, 'recovery', path)));
  const isRequired = [cell, ...flags].some(({ kind }) => kind === 'reset-required');
  const combined = combinedRecovery(printed, isRequired || reset, drain);
  return failed.length > 0 && combined?.action?.action === 'none' ? undefined : combined;
}

const isUnreadFlag = (cell: Cell): boolean => cell.kind !== 'absent' && !isNone(cell) && asBoolean(cell) === undefined;

const recoveryActionOf = (word: string): RecoveryAction | undefined =>
  RECOVERY_ACTIONS.find((each) => word === each.word.toLowerCase() || ('oldWord' in each && word === each.oldWord.toLowerCase()));

/** Elements of each count. When a driver splits a count, its parts are added. The first form that exists counts. */
const UNIFIED: readonly (readonly [EccSeverity, string, readonly string[]])[] = [
  ['correctable', 'sram', ['sram_correctable']],
  ['uncorrectable', 'sram', ['sram_uncorrectable_parity', 'sram_uncorrectable_secded']],
  ['uncorrectable', 'sram', ['sram_uncorrectable']],
  ['correctable', 'dram', ['dram_correctable']],
  ['uncorrectable', 'dram', ['dram_uncorrectable']],
];
/** Locations on boards up to Volta. `total` is not read, because it is the sum of the others. */
const BIT_LOCATIONS = ['device_memory', 'register_file', 'l1_cache', 'l2_cache', 'texture_memory', 'texture_shm', 'cbu'];

/** Reads the error counts of each memory below one element. Errors that the board does not count are absent. */
function eccCounts(gpu: Element, base: string, unread: Unread[]): readonly EccCount[] {
  const at = (elements: readonly string[]): readonly string[] => elements.map((element) => `${base}/${element}`);
  const counts = UNIFIED.flatMap(([severity, location, elements]) => eccCount(gpu, severity, location, at(elements), unread));
  const isFirst = ({ severity, location }: EccCount, at: number): boolean =>
    counts.findIndex((other) => other.severity === severity && other.location === location) === at;
  const bits = BIT_LOCATIONS.flatMap((location) => [
    ...eccCount(gpu, 'correctable', location, [`${base}/single_bit/${location}`], unread),
    ...eccCount(gpu, 'uncorrectable', location, [`${base}/double_bit/${location}`], unread),
  ]);
  return [...counts.filter(isFirst), ...bits];
}

function eccCount(gpu: Element, severity: EccSeverity, location: string, paths: readonly string[], unread: Unread[]): readonly EccCount[] {
  const cells = paths.map((path) => cellAt(gpu, path));
  if (cells.every(({ kind }) => kind === 'absent')) return [];
  unread.push(...paths.map((path) => unreadAt(gpu, 'ecc', path)).filter(({ kind }) => kind === 'error' || kind === 'reset-required'));
  const values = cells.flatMap((cell) => numberValue(cell, 'count') ?? []);
  if (values.length < cells.length) return [{ severity, location }];
  return [{ severity, location, count: values.reduce<bigint>((sum, value) => sum + BigInt(value), 0n) }];
}

/** Reads the processes. An empty list means no process. A text in place of the list means that they are unknown. */
function processesOf(gpu: Element): ProcessList {
  const listed = childrenOf(gpu, 'processes/process_info');
  if (gpu.processes === undefined || (typeof gpu.processes === 'string' && gpu.processes.trim() !== '')) return { list: [] };
  const pids = listed.map((process) => cellAt(process, 'pid'));
  // A process that uses compute and graphics is listed twice.
  const known = new Set(pids.flatMap((pid) => (pid.kind === 'number' ? [pid.value] : [])));
  return { count: known.size + pids.filter((pid) => pid.kind !== 'number').length, list: listed.flatMap(processOf) };
}

function processOf(process: Element): readonly ProcessSample[] {
  const pid = cellAt(process, 'pid');
  if (pid.kind !== 'number' || pid.quantity !== 'count' || !Number.isSafeInteger(pid.value) || pid.value <= 0) return [];
  return [
    {
      pid: pid.value,
      memoryBytes: numberValue(cellAt(process, 'used_memory'), 'bytes') as number | undefined,
      gpuInstance: idAt(process, 'gpu_instance_id'),
      computeInstance: idAt(process, 'compute_instance_id'),
      // `M` or `M+C`.
      ...(/^M\b/.test(textAt(process, 'type') ?? '') ? { isMpsClient: true as const } : {}),
    },
  ];
}

/** Reads the instances of a GPU. It adds an entry to `unread` when the driver failed to list them. */
function instancesOf(gpu: Element, unread: Unread[]): readonly MigSample[] {
  const cell = cellAt(gpu, 'mig_devices');
  const isFailed = isFailure(cell) && cell.kind !== 'lost';
  if (isFailed || (cell.kind === 'text' && !isNone(cell))) unread.push({ ...unreadAt(gpu, 'instances', 'mig_devices'), kind: 'error' });
  return childrenOf(gpu, 'mig_devices/mig_device').flatMap(instanceOf);
}

function instanceOf(element: Element): readonly MigSample[] {
  const gpuInstance = idAt(element, 'gpu_instance_id');
  const computeInstance = idAt(element, 'compute_instance_id');
  if (gpuInstance === undefined || computeInstance === undefined) return [];
  const unread: Unread[] = [];
  const values = valuesOf(element, INSTANCE_KEYS, unread);
  // The driver reports no other errors of an instance.
  const volatile = eccCount(element, 'uncorrectable', 'sram', ['ecc_error_count/volatile_count/sram_uncorrectable'], unread);
  return [{ index: idAt(element, 'index'), gpuInstance, computeInstance, values, ecc: { volatile }, unread }];
}

const idAt = (element: Element, path: string): string | undefined =>
  cellAt(element, path).kind === 'number' ? textAt(element, path) : undefined;
