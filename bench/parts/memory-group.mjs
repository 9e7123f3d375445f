// A memory cgroup for an agent with all its processes: what a container's limit counts. Needs root, and the memory controller of cgroup v1 or v2.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MIB = 2 ** 20;
const isV1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes');
const [USED, PEAK] = isV1 ? ['memory.usage_in_bytes', 'memory.max_usage_in_bytes'] : ['memory.current', 'memory.peak'];
let made = 0;

/** `start`: the words that run the program after them in the group. Pages count where they were first used. */
export function makeMemoryGroup() {
  const group = join(isV1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `device-agent-bench-${process.pid}-${made++}`);
  mkdirSync(group);
  const inMiB = (file) => Number(readFileSync(join(group, file), 'utf8')) / MIB;
  return {
    start: ['/bin/sh', '-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs')],
    usedMiB: () => inMiB(USED),
    peakMiB: () => inMiB(PEAK),
    /** The peak of a group of version 2 cannot be reset. */
    resetPeak: () => isV1 && writeFileSync(join(group, PEAK), '0'),
    remove: () => rmdirSync(group),
  };
}

/** Undefined where no group can be made. */
export function memoryGroup() {
  try {
    return makeMemoryGroup();
  } catch (error) {
    console.error(`no memory cgroup: ${error.message}`);
    return undefined;
  }
}
