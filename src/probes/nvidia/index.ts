import { kernelLogNeed, logProblems } from '../../host/kernel-log/problems.ts';
import { ReplayedTree } from '../../host/recorded/replayed-tree.ts';
import type { ByteSource, DoubtedUtilization, ListedHardware, ProgressSpec } from '../../model/declaration.ts';
import { type KernelRecord, namesIn, type Vocabulary } from '../../model/known-text.ts';
import type { SeriesChoice } from '../../model/metric.ts';
import { defineFamily } from '../family.ts';
import { knownLine, logMetric } from '../kit/log-row.ts';
import { busConditions } from '../kit/pcie/bus-conditions.ts';
import { pcieErrorConditions } from '../kit/pcie/health.ts';
import { pcieLogRows } from '../kit/pcie/log.ts';
import { conditions } from './conditions.ts';
import { options, problems, replayOptions } from './declaration.ts';
import { access, claimNames, ownsNumbers, resolve } from './devices.ts';
import { bus, mayHaveGpus } from './hardware.ts';
import { KernelLogProbe } from './kernel-log.ts';
import { logConditions } from './log-findings.ts';
import { metrics } from './metrics.ts';
import { NvidiaProbe } from './probe.ts';
import { parseCell } from './smi/document.ts';
import { repeatConditions } from './xid-faults.ts';
import { parseNvidiaLine } from './xid-line.ts';

/** What each GPU is that the machine has and the driver does not show. */
export const listing: readonly ListedHardware[] = [
  { what: 'a GPU to which the driver is bound', is: 'listed, unhealthy by NotInitialized, at the first look' },
  {
    what: 'a GPU that a line of nvidia-smi or a code of NVML names',
    is: 'listed, unhealthy by GpuLost, or by NotInitialized if the driver never started it',
  },
  { what: 'a GPU without a driver, while the driver has another GPU of the same model', is: 'listed, unhealthy by NotInitialized' },
  {
    what: 'a GPU without a UUID',
    is: 'listed by its PCI address. Its conditions and holders go to the UUID when the driver tells it',
  },
  { what: 'a GPU whose driver is not loaded or has another version than its library', is: 'listed, unhealthy by DriverUnusable' },
  { what: 'a GPU whose driver does not answer, or which the agent may not open', is: 'listed, unknown' },
  { what: 'a GPU that NVIDIA_VISIBLE_DEVICES of the agent leaves out', is: 'listed, unknown; problem no-permission' },
  { what: 'a GPU that an administrator drains (nvidia-smi drain)', is: 'listed, unknown; problem gpu-drained' },
  { what: 'a GPU that was released to a program or a person', is: 'listed, unknown by DriverReleased' },
  {
    what: 'a GPU of a virtual machine (vfio-pci, nvgrace_gpu_vfio_pci), or for which an administrator chose another driver (driver_override)',
    is: 'listed, handed over (HandedOver); its PCI function is read',
  },
  { what: 'a GPU with a driver of another maker', is: 'not listed, unhealthy by DriverUnbound when it was used before' },
  { what: 'a GPU that lost its driver', is: 'listed, unhealthy by DriverUnbound after a minute' },
  { what: 'a virtual function of a vGPU', is: 'not listed' },
  { what: 'a function of another class than VGA and 3D controller, such as the audio function of a board', is: 'not listed' },
  { what: 'a GPU that the driver was told to exclude', is: 'not listed' },
  { what: 'a GPU without a driver, of a model of which the driver has none', is: 'listed, not in use (NotInUse)' },
  { what: 'a GPU of a node that has neither the driver nor its programs yet', is: 'listed, not in use; problem smi-not-found' },
];

const counters = [metrics.receivedBytes.name, metrics.transmittedBytes.name];
const link = (name: string): ByteSource => ({
  name,
  counters: { metrics: counters, port: name },
  rates: { metric: metrics.traffic.name, labels: { link: name } },
});

const unit = (name: string): SeriesChoice => ({ metric: metrics.activity.name, labels: { unit: name } });
/** Sensors and limits of the power of a board, the best first. */
const POWER = { sensors: ['gpu_average', 'gpu'], limits: ['default', 'enforced'] } as const;

/**
 * Drivers of Blackwell boards can hold the utilization at 100 % while nothing runs. A board without a process rests below half of its clock and a third of its
 * power; a kernel that spins has a process, and its clock is high.
 */
const doubted: DoubtedUtilization = { engine: 'gpu', still: 'memory', clock: 'sm', clockShare: 0.5, power: POWER, powerShare: 0.3 };

const engine = (name: string): SeriesChoice => ({ metric: metrics.utilization.name, labels: { engine: name } });

/**
 * A kernel that waits for another GPU spins: the driver calls the GPU busy. On an H200 and an H100 such kernels left tensor units and FP32 at 0 and the
 * memory below 0.01 %, at 18 to 21 % of the power limit. FP32 in registers on the H100: FP32 at 86 %, all else at 0, 51 % of the limit.
 * The loop of a spinning kernel compares and counts, so a tenth of the integer pipe is no work. Copy engines show in memory and PCIe.
 * The limit is that of the board, not one that an operator lowered: the power of a spinning kernel does not fall with it. The PCIe throughput of the last 20 ms is
 * no mean, so it does not count.
 */
export const progress: ProgressSpec = {
  engine: 'gpu',
  pipes: [
    ...['tensor', 'fp16', 'fp32', 'fp64'].map(unit),
    { ...unit('integer'), weight: 0.1 },
    { metric: metrics.memoryBandwidth.name },
    ...['encoder', 'decoder', 'jpeg', 'ofa'].map(engine),
  ],
  power: POWER,
  bytes: [link('nvlink'), link('pcie')],
};

/** Programs of the driver and of DCGM that use GPUs without holding them. */
export const programs: readonly string[] = [
  'nvidia-cuda-mps-server',
  'nvidia-cuda-mps-control',
  'nv-hostengine',
  'dcgm-exporter',
  'nvidia-persistenced',
  'nv-fabricmanager',
  'nvidia-smi',
];

/** What this family understands. Elements of `nvidia-smi -q -x` by the names that drivers since 450 print. */
export const known: Vocabulary = {
  files: { values: ['mig-minors', 'access', 'gpus/*/information', 'meminfo'] },
  outputs: [
    {
      program: 'nvidia-smi',
      lines:
        /NVIDIA-SMI|NVML|No devices were found|Unable to determine the device handle|infoROM is corrupted|^Unknown Error|^\s*GPU ?\d|^\s*MIG |^NIC\d|^\s*NIC\d+: |^\s+\S*GPU0|^\s*X +=|Legend|Connection traversing|^\[|^WARNING/,
      values: namesIn(`
        attached_gpus pci_* minor_number module_id gpu_module_id *_mode *_ecc *_mig *_state *_status health *_clock *_clocks *_power_*
        power_* *_power *_draw *_limit *_util *_temp temperature *_temperature *_tlimit *threshold* *_volt voltage fan_speed total used
        free reserved used_memory pid type status state clique* clocks_* sram_* dram_* row_remapper_* remapped_* bank_remapper_* *_link_*
        pcie_gen *_gen *_width *_counter *_count retired_* pending_* single_bit double_bit *_bit_retirement cbu device_memory l1_cache
        l2_cache register_file shared texture_* *_pending *_required *_recommended *_action bandwidth unrepairable_memory index
        *_instance_id mig_devices supported_clocks ecc_errors fabric processes summary volatile aggregate clocks max_clocks utilization
        encoder_stats incorrect_* route_* degraded_* access_timeout_* average_* session_* slot_number tray_index host_id
      `),
      texts: ['product_*', 'pci_device_id', 'pci_sub_system_id', '*_version', '*_part_number', 'timestamp'],
      isAbsent: (cell) => !['number', 'text'].includes(parseCell(cell).kind),
    },
  ],
  programs,
  formats: ['GPU', 'MIG'],
  callTexts: [
    'nvmlDeviceGetName',
    'nvmlDeviceGetBoardPartNumber',
    'nvmlDeviceGetVbiosVersion',
    'nvmlDeviceGetGspFirmwareVersion',
    'nvmlSystemGetDriverVersion',
  ],
  // The UUID of the cluster, and the GUID of the GPU in its fabric.
  callIdentities: { nvmlDeviceGetGpuFabricInfo: [0, 16], nvmlDeviceGetGpuFabricInfoV: [4, 20], nvmlDeviceGetPlatformInfo: [4, 20] },
  kernelPrograms: (record: KernelRecord) => {
    const line = parseNvidiaLine(record);
    if (line === undefined || (line.kind === 'other' && !line.isMiddle)) return knownLine(pcieLogRows)(record);
    return line.kind === 'xid' && line.processName !== undefined ? [line.processName] : [];
  },
  // What NVIDIA asks for in a report of an Xid: its channel, engine, class, registers and the address of a fault.
  kernelValues:
    /\b(?:Ch(?:annel)?|Class|Offset|Data|intr|engmask|instance) (?:0x)?[0-9a-f]{1,8}(?![0-9a-z])|@ 0x[0-9a-f]{1,16}(?:_[0-9a-f]{8})?(?![0-9a-z])/gi,
};

export const family = defineFamily({
  name: 'nvidia',
  summary: 'NVIDIA GPUs and MIG instances, by NVML or nvidia-smi, and the kernel log.',
  kinds: ['gpu', 'mig'],
  role: 'gpu',
  partKinds: ['mig'],
  passingKinds: ['mig'],
  partSums: [
    {
      parent: 'NVIDIA GPU',
      parts: 'MIG instances',
      areIncluded: 'Memory, power, energy, temperature and errors: yes. Add up GPUs, or instances, never both.',
    },
  ],
  listing,
  metrics: [...Object.values(metrics), logMetric],
  conditions: [
    ...Object.values(conditions),
    ...busConditions,
    ...pcieErrorConditions,
    ...Object.values(logConditions),
    ...Object.values(repeatConditions),
  ],
  problems: [...problems, ...logProblems],
  needs: [
    kernelLogNeed,
    // The driver leaves out the processes of other PID namespaces.
    { check: 'container-processes', part: 'process-ids', problems: [] },
  ],
  isPresent: mayHaveGpus,
  bus,
  activity: {
    utilization: { above: 0.05, means: { gpu: { metric: metrics.activity.name, labels: { unit: 'graphics' } } }, doubted },
    isForHoldersOnly: true,
  },
  progress,
  shows: { gpu: ['busy', 'memory', 'power', 'temperature'], mig: ['busy', 'memory'] },
  options,
  canBeSlow: true,
  canRelease: true,
  createProbe: (host, values) => {
    // A replay must not depend on the container in which it runs.
    const visible = host.sys instanceof ReplayedTree ? undefined : process.env.NVIDIA_VISIBLE_DEVICES;
    return new KernelLogProbe(new NvidiaProbe(host, values, visible), host, host.kmsg);
  },
  resolve,
  ownsNumbers,
  claimNames,
  claimForms: { partNodes: /^\/dev\/nvidia-caps\/nvidia-cap\d+$/, partTypes: ['mig'] },
  programs,
  // Channels and daemons of IMEX, on nodes of one NVLink domain.
  withoutHardware: ['compute-domain.nvidia.com'],
  // HAMi appends a number to the UUID of a GPU that need not be the one that the container gets.
  delegatedIds: ['nvidia.com/gpu:GPU-*-*-*-*-*-*'],
  access,
  replayOptions,
  known,
});
