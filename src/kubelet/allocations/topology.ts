import type { ContainerMemory, TopologyInfo } from '../../generated/podresources/v1/api.ts';
import type { MemoryBlock } from '../../model/pod-resources.ts';

/** Returns the reported NUMA nodes, sorted. A node without a number on the wire is node 0. Kubelets 1.21 send -1 for no node. */
export function numaNodesOf(topology: TopologyInfo | undefined): number[] {
  return sortedNumbers((topology?.nodes ?? []).map((node) => node.ID));
}

/** Returns distinct numbers in ascending order, without negative ones, which mean "none". */
export function sortedNumbers(values: readonly bigint[]): number[] {
  return [...new Set(values.map(Number))].filter((value) => value >= 0).sort((a, b) => a - b);
}

/** Returns blocks in stable order. A block that spans NUMA nodes stays one block, because its size is not known per node. */
export function memoryBlocks(memory: readonly ContainerMemory[]): MemoryBlock[] {
  return memory
    .filter((block) => block.memoryType !== '' && block.size > 0n)
    .map((block) => ({ type: block.memoryType, bytes: block.size, numaNodes: numaNodesOf(block.topology) }))
    .sort((a, b) => compareText(blockKey(a), blockKey(b)));
}

export function blockKey(block: MemoryBlock): string {
  return `${block.type}\u0000${block.numaNodes.join(',')}\u0000${block.bytes}`;
}

/** Compares by code unit, independent of the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
