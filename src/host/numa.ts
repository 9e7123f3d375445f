import type { Tree } from './fs/tree.ts';

/** The NUMA node of each CPU, by the number of the CPU; empty when the kernel has no NUMA nodes. Source: /sys/devices/system/node. */
export function readCpuNodes(sys: Tree): ReadonlyMap<number, number> {
  const nodes = sys.list('devices/system/node').filter((name) => /^node\d{1,4}$/.test(name));
  return new Map(
    nodes.flatMap((name) =>
      cpusOf(sys.text(`devices/system/node/${name}/cpulist`) ?? '').map((cpu): [number, number] => [
        cpu,
        Number(name.slice('node'.length)),
      ]),
    ),
  );
}

/** More than any kernel is built for. */
const MOST_CPUS = 8_192;

/** Parses `0-19,40-59`. Text of another form gives no CPU. */
function cpusOf(list: string): readonly number[] {
  return list.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
    if (first === undefined || last === undefined) return [];
    const count = Math.min(Number(last) - Number(first) + 1, MOST_CPUS);
    return Array.from({ length: Math.max(0, count) }, (_, at) => Number(first) + at);
  });
}
