import type { ContainerMemory, TopologyInfo } from '../../generated/podresources/v1/api.ts';
import type { MemoryBlock } from '../../model/pod-resources.ts';

/** NUMA nodes told, sorted. A node without a number on the wire is node 0; kubelets of 1.21 say -1 for none. */
export function numaNodesOf(topology: TopologyInfo | undefined): number[] {
  return sortedNumbers((topology?.nodes ?? []).map((node) => node.ID));
}

/** Without repetition, ascending; negative numbers stand for none. */
export function sortedNumbers(values: readonly bigint[]): number[] {
  return [...new Set(values.map(Number))].filter((value) => value >= 0).sort((a, b) => a - b);
}

/** In stable order. A block that spans NUMA nodes stays one block: its size is not the sum of anything. */
export function memoryBlocks(memory: readonly ContainerMemory[]): MemoryBlock[] {
  return memory
    .filter((block) => block.memoryType !== '' && block.size > 0n)
    .map((block) => ({ type: block.memoryType, bytes: block.size, numaNodes: numaNodesOf(block.topology) }))
    .sort((a, b) => compareText(blockKey(a), blockKey(b)));
}

export function blockKey(block: MemoryBlock): string {
  return `${block.type}\u0000${block.numaNodes.join(',')}\u0000${block.bytes}`;
}

/** By code unit: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
