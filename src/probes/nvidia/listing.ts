import type { MigName } from './sample.ts';

/** Names by UUID of the GPU and number of the instance on it. */
export type Listing = ReadonlyMap<string, ReadonlyMap<string, MigName>>;

/**
 * `nvidia-smi -L`, which alone names MIG instances: `GPU 0: NAME (UUID: GPU-…)` and, indented, `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`.
 * The number of a MIG line is the `index` of the instance in the document.
 */
export function parseListing(text: string): Listing {
  const gpus = new Map<string, Map<string, MigName>>();
  let current: Map<string, MigName> | undefined;
  for (const line of text.split('\n')) {
    if (/^GPU \d+:/i.test(line)) {
      current = new Map();
      const gpu = /\(UUID: (GPU-[0-9a-f-]+)\)\s*$/i.exec(line)?.[1];
      if (gpu !== undefined) gpus.set(gpu, current);
    }
    const instance = /^\s+MIG (\S+)\s+Device\s+(\d+):\s*\(UUID: (MIG-[^)\s]+)\)/i.exec(line);
    if (instance !== null) current?.set(instance[2] as string, { uuid: instance[3] as string, profile: instance[1] as string });
  }
  return gpus;
}

/**
 * `nvidia-smi topo -m`, a matrix whose first columns and rows are the GPUs of the document in its order: how many NVLinks lead from each GPU to
 * each other, through switches too, `NV4` for four. Undefined where the text is no such matrix of several GPUs.
 */
export function parseTopology(text: string): readonly (readonly number[])[] | undefined {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  // The header has a GPU in its second place too, or begins with an escape sequence.
  const rows = lines.filter(([first = '', second = '']) => GPU.test(first) && !GPU.test(second));
  const links = rows.map(([, ...cells]) => cells.slice(0, rows.length).map((cell) => Number(/^NV(\d+)$/.exec(cell)?.[1] ?? 0)));
  const isWhole = rows.every(([name], at) => name === `GPU${at}`) && links.every(({ length }) => length === rows.length);
  return rows.length > 1 && isWhole ? links : undefined;
}

const GPU = /^GPU\d+$/;
