/** Enumerations of nvml.h in the words that `nvidia-smi` prints for them. */
type Words = Readonly<Record<number, string>>;

export const BRANDS: Words = {
  1: 'Quadro',
  2: 'Tesla',
  3: 'NVS',
  4: 'GRID',
  5: 'GeForce',
  6: 'Titan',
  7: 'NVIDIA Virtual Applications',
  8: 'NVIDIA Virtual PC',
  9: 'NVIDIA Virtual Compute Server',
  10: 'NVIDIA RTX Virtual Workstation',
  11: 'NVIDIA Cloud Gaming',
  12: 'Quadro RTX',
  13: 'NVIDIA RTX',
  14: 'NVIDIA',
  15: 'GeForce RTX',
  16: 'Titan RTX',
};

export const ARCHITECTURES: Words = {
  2: 'Kepler',
  3: 'Maxwell',
  4: 'Pascal',
  5: 'Volta',
  6: 'Turing',
  7: 'Ampere',
  8: 'Ada Lovelace',
  9: 'Hopper',
  10: 'Blackwell',
  13: 'Rubin',
};
/** The last one that counts memory errors by single and double bits. */
export const VOLTA = 5;

export const COMPUTE_MODES: Words = { 0: 'Default', 1: 'Exclusive_Thread', 2: 'Prohibited', 3: 'Exclusive_Process' };

export const FABRIC_STATE_WORDS: Words = { 0: 'Not Supported', 1: 'Not Started', 2: 'In Progress', 3: 'Completed' };
export const FABRIC_COMPLETED = 3;
export const FABRIC_HEALTH_WORDS: Words = { 1: 'Healthy', 2: 'Unhealthy', 3: 'Limited Capacity' };

/** Field 230. */
export const RECOVERY_WORDS: Words = {
  0: 'None',
  1: 'GPU Reset',
  2: 'Node Reboot',
  3: 'Drain P2P',
  4: 'Drain and Reset',
  5: 'Recover IMEX Domain',
  6: 'Bus Reset',
  7: 'System Reboot',
};

/** Bits of the clock event reasons. Of a driver that does not know a bit, nothing is told by its being 0. */
export const REASON_BITS: Readonly<Record<string, number>> = {
  gpu_idle: 0x1,
  applications_clocks_setting: 0x2,
  sw_power_cap: 0x4,
  hw_slowdown: 0x8,
  sync_boost: 0x10,
  sw_thermal_slowdown: 0x20,
  hw_thermal_slowdown: 0x40,
  hw_power_brake_slowdown: 0x80,
  display_clocks_setting: 0x100,
};

export const FIRST_WITH_LATE_REASONS = 615;
export const LATE_REASON_BITS: Readonly<Record<string, number>> = { board_limit: 0x200, reliability: 0x400 };

/** Two-bit parts of the fabric health mask: 1 is bad, 2 is good. */
export const FABRIC_FAULT_SHIFTS: Readonly<Record<string, number>> = {
  degraded_bandwidth: 0,
  route_recovery: 2,
  route_unhealthy: 4,
  access_timeout_recovery: 6,
};
/** The part of four bits beside them: 0 not told, 1 none. */
export const FABRIC_CONFIGURATION_SHIFT = 8;
