import type { KernelLine, Scenario, SimulatedFault } from '../../family-simulation.ts';
import type { SimulatedGpu } from './document.ts';

/** Lines of the driver. They only grow, because the faults of a scenario only grow. */
export function kernelLog(gpus: readonly SimulatedGpu[], { faults = [], elapsedMs }: Scenario): readonly KernelLine[] {
  const lines = faults
    .filter(({ fromMs }) => fromMs <= elapsedMs)
    .flatMap((fault, n) => {
      const gpu = gpus.find(({ uuid }) => uuid === fault.device);
      return gpu === undefined ? [] : linesOf(fault, gpu, 4_000 + n);
    });
  return [{ atMs: 1, level: 6, text: 'nvidia: loading out-of-tree module taints kernel.' }, ...lines];
}

function linesOf({ name, fromMs: atMs }: SimulatedFault, { address }: SimulatedGpu, pid: number): readonly KernelLine[] {
  const xid = `NVRM: Xid (PCI:${address.slice(0, -2)})`;
  switch (name) {
    case 'xid79':
      return [
        { atMs, text: `${xid}: 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.` },
        { atMs, text: `NVRM: GPU ${address}: GPU has fallen off the bus.` },
      ];
    case 'xid31':
      return [{ atMs, text: `${xid}: 31, pid=${pid}, name=python, Ch 00000008, intr 00000000. MMU Fault` }];
    default:
      return [];
  }
}
