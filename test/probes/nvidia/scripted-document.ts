import { DRIVER, MIB, type ScriptedGpu, type ScriptedNode } from './scripted-script.ts';

/** Prints the same machine as `nvidia-smi -q -x` does, with its units and texts. */
export function documentOf({ gpus, lines = [] }: ScriptedNode): string {
  const driver = lines.map((line) => /^driver = (.*)$/.exec(line)?.[1]).find((version) => version !== undefined) ?? DRIVER;
  return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
<kmd_version>${driver}</kmd_version>
<cuda_umd_version>13.1</cuda_umd_version>
<attached_gpus>${gpus.length}</attached_gpus>
${gpus.map((gpu) => gpuOf(gpu, Number.parseInt(driver, 10))).join('')}</nvidia_smi_log>
`;
}

/** `nvidia-smi -L`. */
export function listingOf({ gpus }: ScriptedNode): string {
  return gpus
    .flatMap(({ values, instances = {} }, index) => [
      `GPU ${index}: ${values.name} (UUID: ${values.uuid})`,
      ...Object.entries(instances).map(
        ([number, instance]) => `  MIG ${String(instance.name).split('MIG ')[1]}     Device  ${number}: (UUID: ${instance.uuid})`,
      ),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

/** `nvidia-smi topo -m`. */
export function topologyOf({ gpus }: ScriptedNode): string {
  const up = ({ values }: ScriptedGpu): number[] =>
    Array.from({ length: 36 }, (_, link) => link).filter((link) => values[`link.${link}`] === 1);
  const toSwitch = (gpu: ScriptedGpu): number => up(gpu).filter((link) => gpu.values[`link.${link}.type`] === 2).length;
  const toEach = (gpu: ScriptedGpu, other: ScriptedGpu): number =>
    up(gpu).filter((link) => gpu.values[`link.${link}.remote`] === other.values.bus_id).length + Math.min(toSwitch(gpu), toSwitch(other));
  const names = gpus.map((_, index) => `GPU${index}`);
  const rows = gpus.map((gpu, row) => {
    const cells = gpus.map((other, column) => (row === column ? ' X ' : toEach(gpu, other) === 0 ? 'SYS' : `NV${toEach(gpu, other)}`));
    return [names[row], ...cells, 'NODE', '0-31', '0'].join('\t');
  });
  return `\t\u001b[4m${[...names, 'NIC0', 'CPU Affinity', 'NUMA Affinity'].join('\t')}\u001b[0m\n${rows.join('\n')}\nNIC0\tNODE\n\nLegend:\n  NV#  = a bonded set of NVLinks\n`;
}

type Value = number | string | undefined;
const REASONS = [
  'gpu_idle',
  'applications_clocks_setting',
  'sw_power_cap',
  'hw_slowdown',
  'sync_boost',
  'sw_thermal_slowdown',
  'hw_thermal_slowdown',
  'hw_power_brake_slowdown',
  'display_clocks_setting',
];
/** Of drivers from 615 on. */
const LATE_REASONS = ['board_limit', 'reliability'];
const BRANDS: Readonly<Record<string, string>> = { 2: 'Tesla', 5: 'GeForce', 13: 'NVIDIA RTX', 14: 'NVIDIA' };
const ARCHITECTURES: Readonly<Record<string, string>> = {
  5: 'Volta',
  6: 'Turing',
  7: 'Ampere',
  8: 'Ada Lovelace',
  9: 'Hopper',
  10: 'Blackwell',
};
const COMPUTE_MODES: Readonly<Record<string, string>> = { 0: 'Default', 2: 'Prohibited', 3: 'Exclusive_Process' };
const STATES: Readonly<Record<string, string>> = { 0: 'Not Supported', 1: 'Not Started', 2: 'In Progress', 3: 'Completed' };
const STATUSES: Readonly<Record<string, string>> = { 0: 'Success', 3: 'Not Supported', 999: 'Unknown Error' };
const SUMMARIES: Readonly<Record<string, string>> = { 1: 'Healthy', 2: 'Unhealthy', 3: 'Limited Capacity' };
const ACTIONS: Readonly<Record<string, string>> = {
  0: 'None',
  1: 'GPU Reset',
  2: 'Node Reboot',
  3: 'Drain P2P',
  4: 'Drain and Reset',
  5: 'Recover IMEX Domain',
  6: 'Bus Reset',
  7: 'System Reboot',
};
const NANOSECONDS_PER_MICROSECOND = 1_000;

function gpuOf({ values: v, fields: f = {}, processes = [], instances = {} }: ScriptedGpu, branch: number): string {
  const told = (print: (value: number | string) => string) => (value: Value) => {
    if (value === undefined || value === 'none') return 'N/A';
    const code = /^code (\d+)$/.exec(String(value))?.[1];
    return code === undefined ? print(value) : code === '999' ? 'Unknown Error' : 'N/A';
  };
  const with_ = (unit: string) => told((value) => `${value}${unit}`);
  const mib = told((value) => `${Number(value) / MIB} MiB`);
  const watts = told((value) => `${(Number(value) / 1_000).toFixed(2)} W`);
  const [percent, degrees, mhz, plain, banks] = [with_(' %'), with_(' C'), with_(' MHz'), with_(''), with_(' bank(s)')];
  const onOff = (value: Value): string => (value === undefined ? 'N/A' : Number(value) === 0 ? 'Disabled' : 'Enabled');
  const yesNo = (value: Value): string => (value === undefined ? 'N/A' : Number(value) === 0 ? 'No' : 'Yes');
  const word = (words: Readonly<Record<string, string>>, value: Value): string => words[String(value)] ?? 'N/A';
  const micros = told((value) => `${Number(value) / NANOSECONDS_PER_MICROSECOND} us`);
  const x = (name: string, content: string): string => `<${name}>${content}</${name}>\n`;
  const reasonAt = (bit: number): string => (v.reasons === undefined ? 'N/A' : (Number(v.reasons) >> bit) & 1 ? 'Active' : 'Not Active');
  const counted = (period: number): string =>
    Number(v.architecture) <= 5
      ? x('single_bit', x('device_memory', plain(v[`ecc.0.${period}.2`])) + x('register_file', plain(v[`ecc.0.${period}.3`]))) +
        x('double_bit', x('device_memory', plain(v[`ecc.1.${period}.2`])) + x('register_file', plain(v[`ecc.1.${period}.3`])))
      : x('sram_correctable', plain(v[`ecc.0.${period}.7`])) +
        x('sram_uncorrectable', plain(v[`ecc.1.${period}.7`])) +
        x('dram_correctable', plain(v[`ecc.0.${period}.2`])) +
        x('dram_uncorrectable', plain(v[`ecc.1.${period}.2`]));
  const fb = (of: Readonly<Record<string, Value>>): string =>
    x('fb_memory_usage', x('total', mib(of.memory_total)) + x('reserved', mib(of.memory_reserved)) + x('used', mib(of.memory_used))) +
    x('bar1_memory_usage', x('total', mib(of.bar1_total)) + x('used', mib(of.bar1_used)));
  const instance = ([index, i]: [string, Readonly<Record<string, Value>>]): string =>
    x(
      'mig_device',
      x('index', index) +
        x('gpu_instance_id', plain(i.gi)) +
        x('compute_instance_id', plain(i.ci)) +
        x('device_attributes', x('shared', x('multiprocessor_count', plain(i.multiprocessors)))) +
        x('ecc_error_count', x('volatile_count', x('sram_uncorrectable', plain(i['ecc.1.0.7'])))) +
        fb(i),
    );
  const process = (line: string): string => {
    const [type, pid, memory, gi = 'N/A', ci = 'N/A'] = line.split(' ');
    return x(
      'process_info',
      x('gpu_instance_id', gi) +
        x('compute_instance_id', ci) +
        x('pid', String(pid)) +
        x('type', String(type)) +
        x('used_memory', mib(memory)),
    );
  };
  const listed = Object.entries(instances).map(instance).join('');
  return `<gpu id="${v.bus_id}">
${x('product_name', plain(v.name))}${x('product_brand', word(BRANDS, v.brand))}${x('product_architecture', word(ARCHITECTURES, v.architecture))}
${x('persistence_mode', onOff(v.persistence))}${x('mig_mode', x('current_mig', onOff(v.mig_current)) + x('pending_mig', onOff(v.mig_pending)))}
${x('mig_devices', listed === '' ? 'None' : listed)}${x('serial', plain(v.serial))}${x('uuid', plain(v.uuid))}${x('minor_number', plain(v.minor))}
${x('vbios_version', plain(v.vbios))}${x('board_part_number', plain(v.board_part))}${x('gsp_firmware_version', plain(v.gsp))}
${x('platformInfo', x('chassis_serial_number', plain(v.chassis)) + x('slot_number', plain(v.slot)) + x('tray_index', plain(v.tray)) + x('host_id', plain(v.host)))}${x('gpu_module_id', plain(v.module))}${x('gpu_recovery_action', word(ACTIONS, f['230 0']))}
${x(
  'pci',
  x('pci_device_id', String(v.pci_device)) +
    x('pci_bus_id', String(v.bus_id)) +
    x(
      'pci_gpu_link_info',
      x('pcie_gen', x('max_link_gen', plain(v.pcie_generation_max)) + x('current_link_gen', plain(v.pcie_generation))) +
        x('link_widths', x('max_link_width', with_('x')(v.pcie_width_max)) + x('current_link_width', with_('x')(v.pcie_width))),
    ) +
    x('replay_counter', plain(v.pcie_replays)) +
    x('replay_rollover_counter', plain(f['95 0'])),
)}
${x('fan_speed', percent(v.fan))}${x('performance_state', with_('')(v.pstate === undefined ? undefined : `P${v.pstate}`))}
${x(
  'clocks_event_reasons',
  [...REASONS, ...(branch >= 615 ? LATE_REASONS : [])].map((reason, bit) => x(`clocks_event_reason_${reason}`, reasonAt(bit))).join(''),
)}
${x(
  'clocks_event_reasons_counters',
  Object.entries({ sw_power_cap: 74, sync_boost: 76, sw_therm_slowdown: 269, hw_therm_slowdown: 270, hw_power_brake: 271 })
    .map(([name, id]) => x(`clocks_event_reasons_counters_${name}`, micros(f[`${id} 0`])))
    .join(''),
)}
${fb(v)}${x('cc_protected_memory_usage', x('total', mib(v.protected_total)) + x('used', mib(v.protected_used)))}
${x('compute_mode', word(COMPUTE_MODES, v.compute_mode))}
${x(
  'utilization',
  Object.entries({ gpu: 'gpu', memory: 'memory', encoder: 'encoder', decoder: 'decoder', jpeg: 'jpeg', ofa: 'ofa' })
    .map(([name, key]) => x(`${name}_util`, percent(v[`util_${key}`])))
    .join(''),
)}
${x('encoder_stats', x('session_count', plain(v.encoder_sessions)))}
${x('ecc_mode', x('current_ecc', onOff(v.ecc_current)) + x('pending_ecc', onOff(v.ecc_pending)))}
${x(
  'ecc_errors',
  x('volatile', counted(0)) +
    x('aggregate', counted(1) + x('sram_threshold_exceeded', yesNo(v.sram_exceeded))) +
    x(
      'aggregate_uncorrectable_sram_sources',
      Object.entries({ l2: 'l2', sm: 'sm', microcontroller: 'mcu', pcie: 'pcie', other: 'other' })
        .map(([name, key]) => x(`sram_${name}`, plain(v[`sram_${key}`])))
        .join(''),
    ) +
    x('channel_repair_pending', yesNo(v.repair_channel)) +
    x('tpc_repair_pending', yesNo(v.repair_tpc)) +
    x('unrepairable_memory', yesNo(v.unrepairable)),
)}
${x(
  'retired_pages',
  x('multiple_single_bit_retirement', x('retired_count', plain(f['29 0']))) +
    x('double_bit_retirement', x('retired_count', plain(f['30 0']))) +
    x('pending_retirement', yesNo(f['31 0'])),
)}
${x(
  'remapped_rows',
  x('remapped_row_corr', plain(v.remap_corr)) +
    x('remapped_row_unc', plain(v.remap_unc)) +
    x('remapped_row_pending', yesNo(v.remap_pending)) +
    x('remapped_row_failure', yesNo(v.remap_failure)) +
    x(
      'row_remapper_histogram',
      ['max', 'high', 'partial', 'low', 'none'].map((name) => x(`row_remapper_histogram_${name}`, banks(v[`banks_${name}`]))).join(''),
    ),
)}
${x(
  'temperature',
  x('gpu_temp', degrees(v.temperature)) +
    x('gpu_temp_tlimit', degrees(v.margin)) +
    x('gpu_temp_max_threshold', degrees(v.threshold_shutdown)) +
    x('gpu_temp_slow_threshold', degrees(v.threshold_slowdown)) +
    x('gpu_temp_max_mem_threshold', degrees(v.threshold_memory)) +
    x('gpu_temp_max_gpu_threshold', degrees(v.threshold_gpu)) +
    x('gpu_temp_max_tlimit_threshold', degrees(f['193 0'])) +
    x('gpu_temp_slow_tlimit_threshold', degrees(f['194 0'])) +
    x('gpu_temp_max_mem_tlimit_threshold', degrees(f['195 0'])) +
    x('gpu_temp_max_gpu_tlimit_threshold', degrees(f['196 0'])) +
    x('memory_temp', degrees(f['82 0'])),
)}
${x(
  'gpu_power_readings',
  x('average_power_draw', watts(f['185 0'])) +
    x('instant_power_draw', watts(f['186 0'])) +
    x('power_draw', watts(v.power)) +
    x('current_power_limit', watts(v.limit_enforced)) +
    x('requested_power_limit', watts(v.limit_requested)) +
    x('default_power_limit', watts(v.limit_default)) +
    x('min_power_limit', watts(v.limit_minimum)) +
    x('max_power_limit', watts(v.limit_maximum)),
)}
${x('gpu_memory_power_readings', x('average_power_draw', watts(f['185 2'])) + x('instant_power_draw', watts(f['186 2'])))}
${x('module_power_readings', x('average_power_draw', watts(f['185 1'])) + x('instant_power_draw', watts(f['186 1'])))}
${x(
  'clocks',
  Object.entries({ graphics: 'graphics', sm: 'sm', mem: 'memory', video: 'video' })
    .map(([name, key]) => x(`${name}_clock`, mhz(v[`clock_${key}`])))
    .join(''),
)}
${x(
  'max_clocks',
  Object.entries({ graphics: 'graphics', sm: 'sm', mem: 'memory', video: 'video' })
    .map(([name, key]) => x(`${name}_clock`, mhz(v[`max_clock_${key}`])))
    .join(''),
)}
${x(
  'fabric',
  x('state', word(STATES, v.fabric_state)) +
    x('status', v.fabric_state === 3 ? word(STATUSES, v.fabric_status) : 'N/A') +
    x('cliqueId', `${v.fabric_clique ?? 0}`) +
    x(
      'clusterUuid',
      `00000000-0000-0000-0000-${Number(v.fabric_cluster ?? 0)
        .toString(16)
        .padStart(12, '0')}`,
    ) +
    x('health', x('summary', word(SUMMARIES, v.fabric_summary))),
)}
${x('processes', processes.map(process).join(''))}
</gpu>
`;
}
