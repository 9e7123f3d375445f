import type { Scenario, SimulatedFault } from '../../family-simulation.ts';
import type { SimulatedGpu } from './document.ts';

/** Text of the kernel log, in the form of `/dev/kmsg`. It only grows, because the faults of a scenario only grow. */
export function kernelLog(gpus: readonly SimulatedGpu[], { faults = [], elapsedMs }: Scenario): string {
  const lines = faults
    .filter(({ fromMs }) => fromMs <= elapsedMs)
    .flatMap((fault, n) => {
      const gpu = gpus.find(({ uuid }) => uuid === fault.device);
      return gpu === undefined ? [] : linesOf(fault, gpu, 4_000 + n);
    });
  const records = lines.map(({ atMs, text }, n) => `4,${n + 2},${Math.round(atMs * 1_000)},-;${text}\n`);
  return ['6,1,1000,-;nvidia: loading out-of-tree module taints kernel.\n', ...records].join('');
}

interface Line {
  readonly atMs: number;
  readonly text: string;
}

function linesOf({ name, fromMs: atMs }: SimulatedFault, { address }: SimulatedGpu, pid: number): readonly Line[] {
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
