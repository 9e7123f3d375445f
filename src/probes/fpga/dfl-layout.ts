import type { ErrorRegister } from './dfl-errors.ts';

/** File layout of one of the two drivers. Paths are relative to the management engine or to the port. */
export interface Layout {
  readonly stack: 'dfl' | 'opae';
  readonly classDirectory: string;
  readonly engine: RegExp;
  readonly port: RegExp;
  readonly registers: Readonly<Partial<Record<ErrorRegister, string>>>;
  /** Path from the engine to the file with the interface id. `*` matches digits. */
  readonly compatId: readonly string[];
}

const COMMON_REGISTERS = {
  pcie0_errors: 'errors/pcie0_errors',
  pcie1_errors: 'errors/pcie1_errors',
  nonfatal_errors: 'errors/nonfatal_errors',
  catfatal_errors: 'errors/catfatal_errors',
} as const;

/** Source: Linux Documentation/ABI/testing/sysfs-platform-dfl-fme. */
export const DFL: Layout = {
  stack: 'dfl',
  classDirectory: 'class/fpga_region',
  engine: /^dfl-fme\.\d+$/,
  port: /^dfl-port\.\d+$/,
  registers: { ...COMMON_REGISTERS, fme_errors: 'errors/fme_errors', inject_errors: 'errors/inject_errors' },
  compatId: ['dfl-fme-region.*', 'fpga_region', 'region*', 'compat_id'],
};

/** OPAE's own driver, which is older than DFL in the kernel. */
export const OPAE: Layout = {
  stack: 'opae',
  classDirectory: 'class/fpga',
  engine: /^intel-fpga-fme\.\d+$/,
  port: /^intel-fpga-port\.\d+$/,
  registers: { ...COMMON_REGISTERS, fme_errors: 'errors/fme-errors/errors', inject_errors: 'errors/inject_error' },
  compatId: ['pr', 'interface_id'],
};
