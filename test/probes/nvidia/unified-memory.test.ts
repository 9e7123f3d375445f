import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hopper } from './scripted-script.ts';
import { started } from './started.ts';

const { memory_total: _, memory_used: __, memory_reserved: ___, ...unsupported } = hopper(0).values;
const MEMINFO = 'MemTotal:       127600748 kB\nMemFree:         7789944 kB\nMemAvailable:   118566368 kB\nSwapTotal:             0 kB\n';
const NOTHING = [undefined, undefined, undefined, undefined];

/** Total and available memory of the host, total and used memory of the GPU. */
async function told(values: Readonly<Record<string, number | string>>, lines: readonly string[] = [], meminfo = MEMINFO) {
  const { node, at } = started({ ...hopper(0), values, lines });
  mkdirSync(join(node.root, 'proc'), { recursive: true });
  writeFileSync(join(node.root, 'proc/meminfo'), meminfo);
  const readings = [...((await at(0)).reports[0]?.read?.readings ?? [])];
  const named = ['nvidia_unified_memory_total', 'nvidia_unified_memory_available', 'memory_total', 'memory_used'];
  return named.map((name) => readings.find(({ metric }) => metric === `device_${name}_bytes`)?.value);
}

describe('the memory of the host', () => {
  it.each(['NVIDIA GB10', 'NVIDIA Thor'])('is told of %s, whose own memory the driver does not tell', async (name) => {
    expect(await told({ ...unsupported, name })).toEqual([130_663_165_952, 121_411_960_832, undefined, undefined]);
  });

  it.each(['NVIDIA H100 80GB HBM3', 'NVIDIA GB100', 'NVIDIA GB200'])('is not told of %s, also without its own memory', async (name) => {
    expect(await told({ ...unsupported, name })).toEqual(NOTHING);
  });

  it('is not told where the driver tells the memory of the GPU', async () => {
    const { values } = hopper(0);
    expect(await told({ ...values, name: 'NVIDIA GB10' })).toEqual([undefined, undefined, values.memory_total, values.memory_used]);
  });

  it('is not told where the driver fails to tell the memory of the GPU', async () => {
    const lines = ['fail.nvmlDeviceGetMemoryInfo_v2 = 999', 'fail.nvmlDeviceGetMemoryInfo = 999'];
    expect(await told({ ...unsupported, name: 'NVIDIA GB10' }, lines)).toEqual(NOTHING);
  });

  it('is absent where its file does not tell it', async () => {
    expect(await told({ ...unsupported, name: 'NVIDIA GB10' }, [], 'MemTotal: lots\n')).toEqual(NOTHING);
  });
});
