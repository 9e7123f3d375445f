type Numbers = Readonly<Record<string, number | string>>;

/** One GPU in the library's terms: what is left out is not supported. */
export interface ScriptedGpu {
  readonly values: Numbers;
  /** Field values: `id scope` to number; a number with a code instead is `code N`. */
  readonly fields?: Readonly<Record<string, number | string>>;
  /** `C 4711 1048576` or `C 4711 1048576 <gi> <ci>`. */
  readonly processes?: readonly string[];
  readonly instances?: Readonly<Record<number, Numbers>>;
  /** Further lines: faults, events. */
  readonly lines?: readonly string[];
}

export interface ScriptedNode {
  readonly lines?: readonly string[];
  readonly gpus: readonly ScriptedGpu[];
}

export const MIB = 1_048_576;
export const DRIVER = '590.44.01';

/** An H100 in use, in terms of the library. */
export function hopper(index: number, more: Numbers = {}): ScriptedGpu {
  const digits = String(index + 1).padStart(12, '0');
  return {
    values: {
      uuid: `GPU-11111111-2222-4333-8444-${digits}`,
      name: 'NVIDIA H100 80GB HBM3',
      serial: `16531${index}`,
      board_part: '692-2G520-0200-000',
      vbios: '96.00.89.00.01',
      gsp: DRIVER,
      bus_id: `00000000:${(0x3b + index).toString(16).toUpperCase()}:00.0`,
      pci_device: '0x233010de',
      minor: index,
      module: index + 1,
      brand: 14,
      architecture: 9,
      memory_total: 81_559 * MIB,
      memory_used: (1_000 + index) * MIB,
      memory_reserved: 551 * MIB,
      bar1_total: 131_072 * MIB,
      bar1_used: 3 * MIB,
      protected_total: 0,
      protected_used: 0,
      util_gpu: 37 + index,
      util_memory: 11,
      util_encoder: 0,
      util_decoder: 2,
      util_jpeg: 0,
      util_ofa: 0,
      temperature: 41 + index,
      margin: 46 - index,
      clock_graphics: 1_980,
      clock_sm: 1_980,
      clock_memory: 2_619,
      clock_video: 1_545,
      max_clock_graphics: 1_980,
      max_clock_sm: 1_980,
      max_clock_memory: 2_619,
      max_clock_video: 1_545,
      pstate: 0,
      reasons: 0x4,
      power: 312_340,
      limit_enforced: 700_000,
      limit_requested: 700_000,
      limit_default: 700_000,
      limit_minimum: 200_000,
      limit_maximum: 700_000,
      pcie_generation: 5,
      pcie_generation_max: 5,
      pcie_width: 16,
      pcie_width_max: 16,
      pcie_replays: 3,
      persistence: 1,
      compute_mode: 0,
      ecc_current: 1,
      ecc_pending: 1,
      mig_current: 0,
      mig_pending: 0,
      encoder_sessions: 0,
      'ecc.0.0.7': 0,
      'ecc.1.0.7': 0,
      'ecc.0.0.2': 2,
      'ecc.1.0.2': 0,
      'ecc.0.1.7': 5,
      'ecc.1.1.7': 1,
      'ecc.0.1.2': 7,
      'ecc.1.1.2': 0,
      sram_l2: 1,
      sram_sm: 0,
      sram_pcie: 0,
      sram_mcu: 0,
      sram_other: 0,
      sram_exceeded: 0,
      remap_corr: 0,
      remap_unc: 1,
      remap_pending: 0,
      remap_failure: 0,
      banks_max: 2_559,
      banks_high: 1,
      banks_partial: 0,
      banks_low: 0,
      banks_none: 0,
      repair_channel: 0,
      repair_tpc: 0,
      unrepairable: 0,
      fabric_state: 3,
      fabric_status: 0,
      fabric_mask: '0x0',
      fabric_summary: 1,
      event_types: '0x1f',
      inforom: 0,
      chassis: '1821325191014',
      slot: 24,
      tray: 14,
      host: 1,
      ...more,
    },
    fields: {
      '82 0': 47,
      '83 0': 123_456_789,
      '186 0': 312_340,
      '185 0': 298_120,
      '95 0': 0,
      '74 0': 5_000_000_000,
      '76 0': 0,
      '269 0': 0,
      '270 0': 1_250_000_000,
      '271 0': 0,
      '230 0': 0,
      '193 0': -8,
      '194 0': -2,
      '196 0': 0,
    },
    processes: ['C 4711 536870912'],
  };
}

export function scriptOf({ lines = [], gpus }: ScriptedNode): string {
  const text = [`driver = ${DRIVER}`, 'cuda = 13010', ...lines];
  for (const [index, gpu] of gpus.entries()) {
    text.push(`[gpu ${index}]`, ...pairs(gpu.values));
    for (const [field, value] of Object.entries(gpu.fields ?? {}))
      text.push(`field = ${field} ${typeof value === 'string' ? value : `${value < 0 ? 5 : 3} ${value}`}`);
    text.push(...(gpu.processes ?? []).map((process) => `process = ${process}`), ...(gpu.lines ?? []));
    for (const [number, instance] of Object.entries(gpu.instances ?? {})) text.push(`[mig ${index} ${number}]`, ...pairs(instance));
  }
  return `${text.join('\n')}\n`;
}

const pairs = (values: Numbers): string[] => Object.entries(values).map(([name, value]) => `${name} = ${value}`);
