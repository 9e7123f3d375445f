import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { family } from '../../../src/probes/nvidia/index.ts';
import { type WatchedNode, watch } from '../../false-alarms/watched-node.ts';
import type { OverlaidTree } from '../../oracle/overlaid-tree.ts';
import { scriptedLibrary } from './scripted-machine.ts';
import { hopper, type ScriptedNode } from './scripted-script.ts';

/** How the agent reads the GPUs. */
export type Source = 'library' | 'command';

/** What the driver shows: which GPUs, and the lines and the exit status of the command. */
export interface Shown {
  readonly gpus: readonly number[];
  /** Lines in front of the document. */
  readonly lines?: readonly string[];
  /** Code with which the library refuses the handle of a GPU, by its index. */
  readonly refused?: Readonly<Record<number, number>>;
  readonly announced?: number;
  /** GPUs that an administrator drains. */
  readonly drained?: readonly number[];
  /** GPUs for which the driver asks for a reset. */
  readonly asking?: readonly number[];
  readonly exit?: number;
  /** The command prints its lines and no document; the library does not start, with this code. */
  readonly failsWith?: number;
}

export const addressOf = (index: number): string => `0000:${(0x3b + index).toString(16)}:00.0`;
export const uuidOf = (index: number): string => String(hopper(index).values.uuid);
const NEVER_STARTED = 'GPU-????????-????-????-????-????????????';

/** What the machine has, apart from what the driver shows. */
export interface Board {
  readonly count: number;
  readonly driver?: string;
  /** The driver never started these GPUs. */
  readonly neverStarted?: readonly number[];
  /** Driver of a function in place of `nvidia`; empty: none. */
  readonly drivers?: Readonly<Record<number, string>>;
  /** Further files, such as those of a virtual function. */
  readonly files?: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
}

export const functionAt = (index: number): string => `sys/bus/pci/devices/${addressOf(index)}`;
export const informationAt = (index: number): string => `proc/driver/nvidia/gpus/${addressOf(index)}/information`;
export const information = (index: number, uuid: string, isExcluded = false): string =>
  `Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 331\nGPU UUID: \t ${uuid}\nBus Location: \t ${addressOf(index)}\nDevice Minor: \t ${index}\nGPU Excluded:\t ${isExcluded ? 'Yes' : 'No'}\n`;

function filesOf({ count, neverStarted = [], drivers = {}, files = {}, links = {} }: Board) {
  const indices = Array.from({ length: count }, (_, index) => index);
  const all: Record<string, string> = { 'proc/driver/nvidia/version': 'NVRM version: NVIDIA UNIX\n', 'bin/nvidia-smi': '#!/bin/sh\n' };
  const bound: Record<string, string> = {};
  for (const index of indices) {
    Object.assign(all, {
      [`${functionAt(index)}/vendor`]: '0x10de\n',
      [`${functionAt(index)}/device`]: '0x2330\n',
      [`${functionAt(index)}/class`]: '0x030200\n',
    });
    const driver = drivers[index] ?? 'nvidia';
    if (driver !== '') bound[`${functionAt(index)}/driver`] = `../../../../bus/pci/drivers/${driver}`;
    if (driver === 'nvidia') all[informationAt(index)] = information(index, neverStarted.includes(index) ? NEVER_STARTED : uuidOf(index));
  }
  return { files: { ...all, ...files }, links: { ...bound, ...links } };
}

const gpuElement = (index: number, isAsking: boolean): string => `<gpu id="0000${addressOf(index).toUpperCase()}">
    <product_name>NVIDIA H100 80GB HBM3</product_name><uuid>${uuidOf(index)}</uuid><minor_number>${index}</minor_number>
    <gpu_recovery_action>${isAsking ? 'GPU Reset' : 'None'}</gpu_recovery_action>
    <fb_memory_usage><total>81559 MiB</total><used>2 MiB</used></fb_memory_usage><temperature><gpu_temp>33 C</gpu_temp></temperature>
  </gpu>`;

/** The document in the schema of a driver: v11 up to 515, v12 up to 580, v13 since. */
function documentOf(driver: string, shown: Shown): string {
  const branch = Number(driver.split('.')[0]);
  const schema = branch < 525 ? 11 : branch < 590 ? 12 : 13;
  return `<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v${schema}.dtd">\n<nvidia_smi_log>
  <driver_version>${driver}</driver_version><attached_gpus>${shown.announced ?? shown.gpus.length}</attached_gpus>
  ${shown.gpus.map((index) => gpuElement(index, shown.asking?.includes(index) === true)).join('\n')}\n</nvidia_smi_log>\n`;
}

function commandOf(driver: string, shown: Shown): string {
  const lines = (shown.lines ?? []).map((line) => `echo '${line.replaceAll("'", "'\\''")}'`);
  const document = shown.failsWith === undefined ? [`cat <<'END'\n${documentOf(driver, shown)}END`] : [];
  const drains = (shown.drained ?? []).map(
    (index) => `*${addressOf(index)}*) echo "The current drain state of GPU 0000${addressOf(index)} is: draining." ;;`,
  );
  const drain = `case "$*" in ${drains.join(' ')} drain*) echo "The current drain state of GPU is: not draining." ;; esac`;
  return [
    '#!/bin/sh',
    `case "$1" in -q) ;; *) ${drain}; exit 0 ;; esac`,
    ...lines,
    ...document,
    `exit ${shown.exit ?? shown.failsWith ?? 0}`,
    '',
  ].join('\n');
}

function scriptFor(driver: string, { gpus, refused = {}, failsWith, drained = [], asking = [] }: Shown): ScriptedNode {
  const drains = drained.map((index) => `drained = ${0x3b + index}`);
  const lines = [`driver = ${driver}`, ...drains, ...(failsWith === undefined ? [] : [`fail.nvmlInit_v2 = ${failsWith}`])];
  const all = [...gpus, ...Object.keys(refused).map(Number)].sort((a, b) => a - b);
  return {
    lines,
    gpus: all.map((index) => {
      const code = refused[index];
      const gpu = hopper(index);
      const fields = { ...gpu.fields, '230 0': asking.includes(index) ? 1 : 0 };
      return { ...gpu, fields, processes: [], ...(code !== undefined && { lines: [`fail.nvmlDeviceGetHandleByIndex_v2 = ${code}`] }) };
    }),
  };
}

/** Binds a function to a driver; undefined: to none. */
export function bind(node: WatchedNode, index: number, driver: string | undefined): void {
  const link = join(node.tree.root, functionAt(index), 'driver');
  rmSync(link, { force: true });
  if (driver === undefined) return;
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(`../../../../bus/pci/drivers/${driver}`, link);
}

/** The whole agent on a board, and what its driver shows from then on. */
export async function boardWith(
  source: Source,
  board: Board,
  first: Shown,
  log: readonly string[] = [],
): Promise<{ readonly node: WatchedNode; show(next: Shown): void }> {
  const driver = board.driver ?? '590.44.01';
  const { files, links } = filesOf(board);
  let show = (_: Shown): void => {};
  const prepare = (tree: OverlaidTree): void => {
    if (source === 'command') {
      show = (next) => tree.write('bin/nvidia-smi', () => commandOf(driver, next));
      show(first);
    } else {
      const { write } = scriptedLibrary(tree.root, scriptFor(driver, first));
      show = (next) => write(scriptFor(driver, next));
    }
    for (const [at, text] of log.entries()) tree.write('dev/kmsg', (before) => `${before}3,${100 + at},${5_000_000 + at},-;${text}\n`);
  };
  const options =
    source === 'command' ? { 'smi-path': '{root}/bin/nvidia-smi' } : { source: 'nvml', 'nvml-library': '{root}/libnvidia-ml.so.1' };
  const node = await watch({ family, files, links, options }, prepare);
  return { node, show: (next) => show(next) };
}
