import type { FaultSpec, Scenario, SimulatedFault } from './family-simulation.ts';

/** What one fault did to one simulated device until now. */
export interface FaultPast {
  readonly isOn: boolean;
  /** How often it began. */
  readonly times: number;
  /** Total time for which it lasted. */
  readonly totalMs: number;
}

/** Sums up a fault of one device; without a device, a fault of all devices of the family. Counters of the hardware depend on it, so it never falls. */
export function pastOf({ faults = [], elapsedMs }: Pick<Scenario, 'faults' | 'elapsedMs'>, name: string, device?: string): FaultPast {
  const begun = faults.filter((fault) => fault.name === name && fault.device === device && fault.fromMs <= elapsedMs);
  const endOf = ({ untilMs = elapsedMs }: SimulatedFault): number => Math.min(untilMs, elapsedMs);
  return {
    isOn: begun.some((fault) => isOn(fault, elapsedMs)),
    times: begun.length,
    totalMs: begun.reduce((sum, fault) => sum + Math.max(endOf(fault) - fault.fromMs, 0), 0),
  };
}

export function isOn({ fromMs, untilMs }: Pick<SimulatedFault, 'fromMs' | 'untilMs'>, elapsedMs: number): boolean {
  return fromMs <= elapsedMs && (untilMs === undefined || elapsedMs < untilMs);
}

/** Whether the fault concerns all devices of its family, so that it needs no device. */
export const isOfWholeFamily = ({ kinds }: Pick<FaultSpec, 'kinds'>): boolean => kinds.length === 0;
