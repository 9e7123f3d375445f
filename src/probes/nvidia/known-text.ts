import { type KernelRecord, type KnownText, namesIn } from '../../model/known-text.ts';
import { parseCell } from './cell.ts';
import { parseNvidiaLine } from './xid-line.ts';

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
export const known: KnownText = {
  files: { values: ['mig-minors', 'access', 'gpus/*/information'] },
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
        encoder_stats incorrect_* route_* degraded_* access_timeout_* average_* session_*
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
  // The UUID of the cluster.
  callIdentities: { nvmlDeviceGetGpuFabricInfo: [0, 16], nvmlDeviceGetGpuFabricInfoV: [4, 20] },
  kernelPrograms: (record: KernelRecord) => {
    const line = parseNvidiaLine(record);
    if (line === undefined || (line.kind === 'other' && !line.isMiddle)) return undefined;
    return line.kind === 'xid' && line.processName !== undefined ? [line.processName] : [];
  },
  // What NVIDIA asks for in a report of an Xid: its channel, engine, class, registers and the address of a fault.
  kernelValues:
    /\b(?:Ch(?:annel)?|Class|Offset|Data|intr|engmask|instance) (?:0x)?[0-9a-f]{1,8}(?![0-9a-z])|@ 0x[0-9a-f]{1,16}(?:_[0-9a-f]{8})?(?![0-9a-z])/gi,
};
