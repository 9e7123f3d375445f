import type { Getter } from './getter.ts';
import { CLOCKS, clock, digits, flag, LINK_GENERATION, LINK_WIDTH, milliwatts, one, same, several, text, u32 } from './ways.ts';
import { ARCHITECTURES, BRANDS, COMPUTE_MODES } from './words.ts';

/** What stays until somebody changes it: limits and modes. */
export const factGetters: readonly Getter[] = [
  several('nvmlDeviceGetEccMode', ['ecc_mode/current_ecc', 'ecc_mode/pending_ecc'], flag),
  one('persistence_mode', u32('nvmlDeviceGetPersistenceMode', 'persistence_mode', flag)),
  one(
    'compute_mode',
    u32('nvmlDeviceGetComputeMode', 'compute_mode', (mode) => COMPUTE_MODES[mode]),
  ),
  ...Object.entries({ current: 'EnforcedPowerLimit', requested: 'PowerManagementLimit', default: 'PowerManagementDefaultLimit' }).map(
    ([limit, name]) =>
      one(`gpu_power_readings/${limit}_power_limit`, u32(`nvmlDeviceGet${name}`, `gpu_power_readings/${limit}_power_limit`, milliwatts)),
  ),
  several(
    'nvmlDeviceGetPowerManagementLimitConstraints',
    ['gpu_power_readings/min_power_limit', 'gpu_power_readings/max_power_limit'],
    milliwatts,
  ),
  ...CLOCKS.map((name) => clock(name, 'max_clocks', 'nvmlDeviceGetMaxClockInfo')),
  one(`${LINK_GENERATION}/max_link_gen`, u32('nvmlDeviceGetMaxPcieLinkGeneration', `${LINK_GENERATION}/max_link_gen`)),
  one(`${LINK_WIDTH}/max_link_width`, u32('nvmlDeviceGetMaxPcieLinkWidth', `${LINK_WIDTH}/max_link_width`)),
];

const THRESHOLDS = ['max', 'slow', 'max_mem', 'max_gpu'];

/** Limits in degrees, which boards have that do not tell them as degrees left. */
export const thresholdGetters: readonly Getter[] = THRESHOLDS.map((limit, type) =>
  one(
    `temperature/gpu_temp_${limit}_threshold`,
    u32('nvmlDeviceGetTemperatureThreshold', `temperature/gpu_temp_${limit}_threshold`, same, [type]),
  ),
);
export const TEMPERATURE_MARGINS: readonly string[] = THRESHOLDS.map((limit) => `temperature/gpu_temp_${limit}_tlimit_threshold`);

export const uuidGetter: Getter = one('uuid', text('nvmlDeviceGetUUID', 'uuid', 96));

/** What else a board is, which stays as long as the handle. */
export const identityGetters: readonly Getter[] = [
  one('product_name', text('nvmlDeviceGetName', 'product_name', 96)),
  one('serial', text('nvmlDeviceGetSerial', 'serial', 30)),
  one('board_part_number', text('nvmlDeviceGetBoardPartNumber', 'board_part_number', 80)),
  one('vbios_version', text('nvmlDeviceGetVbiosVersion', 'vbios_version', 32)),
  one('gsp_firmware_version', { ...text('nvmlDeviceGetGspFirmwareVersion', 'gsp_firmware_version', 80), after: [], size: 80 }),
  one('minor_number', u32('nvmlDeviceGetMinorNumber', 'minor_number', digits)),
  one('gpu_module_id', u32('nvmlDeviceGetModuleId', 'gpu_module_id', digits)),
  one(
    'product_brand',
    u32('nvmlDeviceGetBrand', 'product_brand', (brand) => BRANDS[brand]),
  ),
  {
    paths: ['product_architecture', 'nvml/architecture'],
    ways: [
      {
        symbol: 'nvmlDeviceGetArchitecture',
        tell: (out, values) => {
          values.product_architecture = ARCHITECTURES[out.u32(0)];
          values['nvml/architecture'] = out.u32(0);
        },
      },
    ],
  },
];
