import type { Traffic } from './traffic.ts';

/** `auto`: the link of the VF follows the port. `enable`: it is always up. `disable`: it is always down. */
export type LinkState = 'auto' | 'enable' | 'disable';

/** What the driver of a physical function (PF) tells of one of its virtual functions (VFs). A fact that it does not tell is absent. */
export interface VirtualFunction {
  /** Number of the VF: the N of the PF's `virtfnN`. */
  readonly number: number;
  readonly linkState?: LinkState;
  readonly checksSpoofing?: boolean;
  readonly isTrusted?: boolean;
  /** VLAN that the PF adds; 0 for none. */
  readonly vlan?: number;
  /** Limit in megabits per second; 0 for none. */
  readonly transmitLimit?: number;
  readonly traffic?: Traffic;
}

/** What one source tells of a physical function's interface and its virtual functions. */
export interface LinkDescription {
  readonly name: string;
  readonly index: number;
  /** Lower case; absent for a link without an address. */
  readonly hardwareAddress?: string;
  /** PCI address of the device below the link. Kernels before 5.14 do not tell it. */
  readonly parentDevice?: string;
  readonly functions: readonly VirtualFunction[];
}

/** Limit of virtual functions of one physical function: the PCI capability counts them with 16 bits. */
export const MOST_FUNCTIONS = 65_535;
