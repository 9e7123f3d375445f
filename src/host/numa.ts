import type { Tree } from './fs/tree.ts';

/** More than any kernel is built for. */
const MOST_CPUS = 8_192;
const MOST_NODES = 1_024;

/**
 * The NUMA node of each CPU, by the number of the CPU; empty when the kernel has no NUMA nodes. Source: /sys/devices/system/node. A list of
 * ranges that are not in order is none of the kernel's, and gives no CPU.
 */
export function readCpuNodes(sys: Tree): ReadonlyMap<number, number> {
  const nodes = new Map<number, number>();
  for (const name of sys
    .list('devices/system/node')
    .filter((one) => /^node\d{1,4}$/.test(one))
    .slice(0, MOST_NODES)) {
    const ranges = rangesOf(sys.text(`devices/system/node/${name}/cpulist`) ?? '') ?? [];
    for (const [first, last] of ranges) for (let cpu = first; cpu <= last; cpu += 1) nodes.set(cpu, Number(name.slice('node'.length)));
  }
  return nodes;
}

/** Parses `0-19,40-59`. Ranges that follow each other have no more CPUs together than the kernel can have, however long the text is. */
function rangesOf(list: string): readonly (readonly [number, number])[] | undefined {
  const ranges: (readonly [number, number])[] = [];
  for (const part of list === '' ? [] : list.split(',')) {
    const [, first = '', last = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === '' || to < from || to >= MOST_CPUS || from <= (ranges.at(-1)?.[1] ?? -1)) return undefined;
    ranges.push([from, to]);
  }
  return ranges;
}
