import type { Scenario, SimulatedHolder } from '../../family-simulation.ts';
import { pastOf } from '../../fault-past.ts';

/** PID of the process of each pod, keyed by the UID of the pod. */
export type SimulatedPids = ReadonlyMap<string, number>;

/** One simulated GPU at one moment. */
export interface SimulatedGpu {
  readonly index: number;
  readonly uuid: string;
  /** PCI address in the form of sysfs. */
  readonly address: string;
  readonly numaNode: number;
  readonly isHot: boolean;
  /** Total time for which it was hot. */
  readonly hotMs: number;
  /** Whether it does not answer on the bus. */
  readonly isLost: boolean;
  /** Whether memory errors wait for a reset, and how often such errors came. */
  readonly hasMemoryErrors: boolean;
  readonly timesMemoryErrors: number;
  /** Whether a program that belongs to no pod uses it. */
  readonly hasStranger: boolean;
  /** Whether a kernel only waits on it. */
  readonly isSpinning: boolean;
  /** Load from 0 to 1. */
  readonly load: number;
  /** Memory in use. */
  readonly usedMib: number;
  readonly holder?: SimulatedHolder;
  readonly instances: readonly SimulatedInstance[];
}

export interface SimulatedInstance {
  readonly index: number;
  readonly uuid: string;
  readonly gpuInstance: number;
  readonly usedMib: number;
  readonly holder?: SimulatedHolder;
}

const MIB_TOTAL = 81_559;

/** As we measured of a kernel that waits on an H200 of 700 W. */
const SPINNING_WATTS = 139;

/** Memory of a program that belongs to no pod. */
export const STRANGER_MIB = 6_000;

export function simulateGpu(index: number, scenario: Scenario): SimulatedGpu {
  const { counts, elapsedMs, use } = scenario;
  const gpus = counts.nvidia ?? 0;
  const isSplit = gpus >= 4 && index === gpus - 1;
  const digits = (index + 1).toString(16).padStart(12, '0');
  const uuid = `GPU-5e1f0000-0000-4000-8000-${digits}`;
  const work = 0.55 + 0.4 * Math.sin(elapsedMs / 20_000 + index);
  const instances = (isSplit ? [7, 8, 9] : []).map((gpuInstance, n): SimulatedInstance => {
    const own = `MIG-5e1f0000-0000-4000-8000-${digits.slice(0, 11)}${n}`;
    const { holder, load } = loadOf(own, work, use);
    return { index: n, uuid: own, gpuInstance, usedMib: Math.round(9_000 * load * (1 - n / 10)), ...(holder && { holder }) };
  });
  const { holder, load } = isSplit ? { load: instances.some(({ usedMib }) => usedMib > 0) ? work : 0 } : loadOf(uuid, work, use);
  const [hot, memory] = [pastOf(scenario, 'hot', uuid), pastOf(scenario, 'ecc', uuid)];
  const hasStranger = pastOf(scenario, 'stranger', uuid).isOn;
  const ownMib = holder?.isIdle === true ? IDLE_MIB : Math.round(MIB_TOTAL * 0.85 * load);
  return {
    index,
    uuid,
    address: `0008:${(index + 1).toString(16).padStart(2, '0')}:00.0`,
    numaNode: index < gpus / 2 ? 0 : 1,
    isHot: hot.isOn,
    hotMs: hot.totalMs,
    isLost: pastOf(scenario, 'xid79', uuid).isOn,
    hasMemoryErrors: memory.isOn,
    timesMemoryErrors: memory.times,
    hasStranger,
    isSpinning: pastOf(scenario, 'spin', uuid).isOn,
    load,
    usedMib: ownMib + (hasStranger ? STRANGER_MIB : 0),
    ...(holder && { holder }),
    instances,
  };
}

/** Memory that an idle program keeps. */
const IDLE_MIB = 40_000;

/** Load from 0 to 1. A device without a program that works has none. */
function loadOf(id: string, work: number, use: Scenario['use']): { readonly load: number; readonly holder?: SimulatedHolder | undefined } {
  if (use === undefined) return { load: work };
  const holder = use[id]?.holder;
  return { load: holder?.isIdle === false ? work : 0, holder };
}

export function simulatedListing(gpus: readonly SimulatedGpu[]): string {
  return gpus
    .flatMap(({ index, uuid, instances }) => [
      `GPU ${index}: NVIDIA H100 80GB HBM3 (UUID: ${uuid})`,
      ...instances.map((instance) => `  MIG 1g.10gb     Device  ${instance.index}: (UUID: ${instance.uuid})`),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

/** Prints the topology of GPUs on NVSwitches. A GPU with MIG has no links. */
export function simulatedTopology(gpus: readonly SimulatedGpu[]): string {
  const isLinked = ({ instances }: SimulatedGpu): boolean => instances.length === 0;
  const cell = (row: SimulatedGpu, column: SimulatedGpu): string => {
    if (row.index === column.index) return ' X ';
    if (isLinked(row) && isLinked(column)) return 'NV18';
    return row.numaNode === column.numaNode ? 'NODE' : 'SYS';
  };
  const rows = gpus.map((row) => [`GPU${row.index}`, ...gpus.map((column) => cell(row, column))]);
  return [['', ...gpus.map(({ index }) => `GPU${index}`)], ...rows].map((cells) => `${cells.join('\t')}\n`).join('');
}

/** Prints the document in the format of the 580 driver branch. */
export function simulatedDocument(gpus: readonly SimulatedGpu[], pids: SimulatedPids): string {
  return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
\t<timestamp>Thu Jan  1 00:00:00 2026</timestamp>
\t<driver_version>580.105.08</driver_version>
\t<cuda_version>13.0</cuda_version>
\t<attached_gpus>${gpus.length}</attached_gpus>
${gpus.map((gpu) => (gpu.isLost ? lostElement(gpu) : gpuElement(gpu, pids))).join('')}</nvidia_smi_log>
`;
}

const LOST = 'GPU is lost';
/** Number of memory errors of one fault. A reset of the GPU sets the volatile count back. */
const ERRORS_AT_ONCE = 2;

/** Identity of a GPU, which the driver keeps when the GPU does not answer. */
function identity(gpu: SimulatedGpu): Tree {
  const isSplit = gpu.instances.length > 0;
  return {
    product_name: 'NVIDIA H100 80GB HBM3',
    product_brand: 'NVIDIA',
    product_architecture: 'Hopper',
    persistence_mode: 'Enabled',
    addressing_mode: 'HMM',
    mig_mode: { current_mig: isSplit ? 'Enabled' : 'Disabled', pending_mig: isSplit ? 'Enabled' : 'Disabled' },
    mig_devices: isSplit ? { mig_device: gpu.instances.map(instanceElement) } : 'None',
    serial: `165${String(gpu.index).padStart(10, '0')}`,
    uuid: gpu.uuid,
    minor_number: String(gpu.index),
    vbios_version: '96.00.89.00.01',
    board_part_number: '692-2G520-0200-000',
    gpu_part_number: '2330-885-A1',
    gsp_firmware_version: '580.105.08',
  };
}

const idOf = ({ address }: SimulatedGpu): string => `id="0000${address.toUpperCase()}"`;

/** A GPU that fell off the bus: in place of each live value there is a sentence. */
function lostElement(gpu: SimulatedGpu): string {
  const live = ['fan_speed', 'performance_state', 'clocks_event_reasons', 'fb_memory_usage', 'ecc_errors', 'remapped_rows', 'temperature'];
  return element('gpu', idOf(gpu), {
    ...identity(gpu),
    gpu_recovery_action: LOST,
    pci: { replay_counter: LOST, tx_util: LOST, rx_util: LOST },
    ...Object.fromEntries(live.map((name) => [name, LOST])),
    utilization: { gpu_util: LOST },
    clocks: { sm_clock: LOST },
    processes: LOST,
  });
}

function gpuElement(gpu: SimulatedGpu, pids: SimulatedPids): string {
  const isSplit = gpu.instances.length > 0;
  const temperature = Math.round(gpu.isHot ? 88 : 34 + 30 * gpu.load);
  const share = (text: number | string, unit: string): string => (isSplit ? 'N/A' : `${text} ${unit}`);
  return element('gpu', idOf(gpu), {
    ...identity(gpu),
    gpu_recovery_action: 'None',
    pci: {
      pci_gpu_link_info: {
        pcie_gen: { max_link_gen: '5', current_link_gen: '5' },
        link_widths: { max_link_width: '16x', current_link_width: '16x' },
      },
      replay_counter: '0',
      replay_rollover_counter: '0',
      tx_util: `${Math.round(90_000 * gpu.load)} KB/s`,
      rx_util: `${Math.round(120_000 * gpu.load)} KB/s`,
    },
    fan_speed: 'N/A',
    performance_state: gpu.load > 0.3 ? 'P0' : 'P8',
    clocks_event_reasons: {
      clocks_event_reason_gpu_idle: 'Not Active',
      clocks_event_reason_sw_power_cap: 'Not Active',
      clocks_event_reason_hw_slowdown: gpu.isHot ? 'Active' : 'Not Active',
      clocks_event_reason_hw_thermal_slowdown: gpu.isHot ? 'Active' : 'Not Active',
      clocks_event_reason_hw_power_brake_slowdown: 'Not Active',
    },
    clocks_event_reasons_counters: { clocks_event_reasons_counters_hw_therm_slowdown: `${gpu.hotMs * 1000} us` },
    fb_memory_usage: {
      total: `${MIB_TOTAL} MiB`,
      reserved: '551 MiB',
      used: `${gpu.usedMib} MiB`,
      free: `${MIB_TOTAL - 551 - gpu.usedMib} MiB`,
    },
    bar1_memory_usage: { total: '131072 MiB', used: '2 MiB', free: '131070 MiB' },
    compute_mode: 'Default',
    utilization: {
      gpu_util: share(gpu.isSpinning ? 100 : Math.round(100 * gpu.load), '%'),
      memory_util: share(Math.round(60 * gpu.load), '%'),
      encoder_util: share(0, '%'),
      decoder_util: share(0, '%'),
      jpeg_util: share(0, '%'),
      ofa_util: share(0, '%'),
    },
    ecc_mode: { current_ecc: 'Enabled', pending_ecc: 'Enabled' },
    ecc_errors: {
      volatile: {
        sram_correctable: '0',
        sram_uncorrectable_parity: '0',
        sram_uncorrectable_secded: '0',
        dram_correctable: '0',
        dram_uncorrectable: gpu.hasMemoryErrors ? String(ERRORS_AT_ONCE) : '0',
      },
      aggregate: {
        sram_correctable: '0',
        sram_uncorrectable_parity: '0',
        sram_uncorrectable_secded: '0',
        dram_correctable: '3',
        dram_uncorrectable: String(ERRORS_AT_ONCE * gpu.timesMemoryErrors),
        sram_threshold_exceeded: 'No',
      },
    },
    remapped_rows: isSplit
      ? 'N/A'
      : {
          remapped_row_corr: '0',
          remapped_row_unc: String(gpu.timesMemoryErrors),
          remapped_row_pending: gpu.hasMemoryErrors ? 'Yes' : 'No',
          remapped_row_failure: 'No',
          row_remapper_histogram: { row_remapper_histogram_max: '2560 bank(s)', row_remapper_histogram_none: '0 bank(s)' },
        },
    temperature: {
      gpu_temp: `${temperature} C`,
      gpu_temp_tlimit: `${87 - temperature} C`,
      gpu_temp_max_tlimit_threshold: '-8 C',
      gpu_temp_slow_tlimit_threshold: '-2 C',
      gpu_temp_max_gpu_tlimit_threshold: '0 C',
      memory_temp: `${temperature + 6} C`,
    },
    gpu_power_readings: {
      power_state: 'P0',
      average_power_draw: `${(gpu.isSpinning ? SPINNING_WATTS : 90 + 560 * gpu.load).toFixed(2)} W`,
      instant_power_draw: `${(gpu.isSpinning ? SPINNING_WATTS : 95 + 580 * gpu.load).toFixed(2)} W`,
      current_power_limit: '700.00 W',
      default_power_limit: '700.00 W',
      min_power_limit: '200.00 W',
      max_power_limit: '700.00 W',
    },
    clocks: { graphics_clock: '1980 MHz', sm_clock: '1980 MHz', mem_clock: '2619 MHz', video_clock: '1545 MHz' },
    max_clocks: { graphics_clock: '1980 MHz', sm_clock: '1980 MHz', mem_clock: '2619 MHz', video_clock: '1545 MHz' },
    fabric: { state: 'Completed', status: 'Success', health: { summary: 'Healthy' } },
    processes: processesOf(gpu, pids),
  });
}

function instanceElement(instance: SimulatedInstance): Tree {
  const used = instance.usedMib;
  return {
    index: String(instance.index),
    gpu_instance_id: String(instance.gpuInstance),
    compute_instance_id: '0',
    device_attributes: { shared: { multiprocessor_count: '16' } },
    ecc_error_count: { volatile_count: { sram_uncorrectable: '0' } },
    fb_memory_usage: { total: '9984 MiB', reserved: '0 MiB', used: `${used} MiB`, free: `${9_984 - used} MiB` },
    bar1_memory_usage: { total: '16383 MiB', used: '0 MiB', free: '16383 MiB' },
  };
}

/** PID and name of a program that belongs to no pod. */
export const STRANGER = { firstPid: 50_000, program: 'xmrig' };

function strangerEntry({ index, hasStranger }: SimulatedGpu): readonly Tree[] {
  if (!hasStranger) return [];
  const pid = String(STRANGER.firstPid + index);
  const [process_name, used_memory] = [STRANGER.program, `${STRANGER_MIB} MiB`];
  return [{ gpu_instance_id: 'N/A', compute_instance_id: 'N/A', pid, type: 'C', process_name, used_memory }];
}

/** Lists the process of each holder, and of a stranger. */
function processesOf(gpu: SimulatedGpu, pids: SimulatedPids): string | Tree {
  const entry = (instance: string, { holder, usedMib }: Pick<SimulatedInstance, 'holder' | 'usedMib'>): readonly Tree[] => {
    const pid = pids.get(holder?.podUid ?? '');
    if (holder === undefined || pid === undefined) return [];
    const compute = instance === 'N/A' ? 'N/A' : '0';
    const [process_name, used_memory] = [holder.program, `${usedMib} MiB`];
    return [{ gpu_instance_id: instance, compute_instance_id: compute, pid: String(pid), type: 'C', process_name, used_memory }];
  };
  const own = gpu.hasStranger ? gpu.usedMib - STRANGER_MIB : gpu.usedMib;
  const process_info = [
    ...entry('N/A', { ...gpu, usedMib: own }),
    ...strangerEntry(gpu),
    ...gpu.instances.flatMap((instance) => entry(String(instance.gpuInstance), instance)),
  ];
  return process_info.length === 0 ? '' : { process_info };
}

/** Elements and texts of an XML document, keyed by name. */
interface Tree {
  readonly [name: string]: string | Tree | readonly Tree[];
}

/** Returns the lines of one element. */
function element(name: string, attributes: string, children: Tree): string {
  return `\t<${name}${attributes === '' ? '' : ` ${attributes}`}>\n${content(children)}\t</${name}>\n`;
}

function content(children: Tree): string {
  return Object.entries(children)
    .map(([name, child]) => {
      if (typeof child === 'string') return `\t\t<${name}>${child}</${name}>\n`;
      const list: readonly Tree[] = Array.isArray(child) ? child : [child as Tree];
      return list.map((each) => element(name, '', each)).join('');
    })
    .join('');
}
