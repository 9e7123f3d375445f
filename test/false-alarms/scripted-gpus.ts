import { family } from '../../src/probes/nvidia/index.ts';
import { scriptedLibrary } from '../probes/nvidia/scripted-machine.ts';
import { hopper, type ScriptedGpu, type ScriptedNode } from '../probes/nvidia/scripted-script.ts';
import { type WatchedNode, watch } from './watched-node.ts';

type Numbers = ScriptedGpu['values'];

export const addressOf = (index: number): string => `0000:${(0x3b + index).toString(16)}:00.0`;

/** The GPUs that the driver uses. */
export const BOUND = 'proc/driver/nvidia/gpus';

/** GPUs that answer through a library in the place of the vendor's. `write` changes what it answers. */
export async function watchGpus(
  first: ScriptedNode,
  onBus = first.gpus.length,
): Promise<{ node: WatchedNode; write(next: ScriptedNode): void }> {
  const indices = Array.from({ length: onBus }, (_, index) => index);
  const files = indices.flatMap((index): [string, string][] => {
    const pci = `sys/bus/pci/devices/${addressOf(index)}`;
    return [
      [`${pci}/vendor`, '0x10de\n'],
      [`${pci}/class`, '0x030200\n'],
      [`${BOUND}/${addressOf(index)}/information`, `Device Minor: ${index}\n`],
    ];
  });
  let write = (_: ScriptedNode): void => {};
  const options = { source: 'nvml', 'nvml-library': '{root}/libnvidia-ml.so.1' };
  const node = await watch({ family, files: Object.fromEntries(files), options }, (tree) => {
    write = scriptedLibrary(tree.root, first).write;
  });
  return { node, write };
}

export const gpus = (count: number, more: (index: number) => Numbers = () => ({})): ScriptedNode => ({
  gpus: Array.from({ length: count }, (_, index) => ({ ...hopper(index, more(index)), processes: [] })),
});
/** The same node with other values of one GPU. */
export const changed = (node: ScriptedNode, at: number, values: Numbers, fields: ScriptedGpu['fields'] = {}): ScriptedNode => ({
  ...node,
  gpus: node.gpus.map((gpu, index) =>
    index === at ? { ...gpu, values: { ...gpu.values, ...values }, fields: { ...gpu.fields, ...fields } } : gpu,
  ),
});
/** Drivers before 570 tell no recovery action. */
export const withoutAction = (node: ScriptedNode): ScriptedNode =>
  node.gpus.reduce((all, _, at) => changed(all, at, {}, { '230 0': 'code 3' }), node);

/** The driver ends the library's client, and no client can start. */
export const closedWith = (node: ScriptedNode, code: number): ScriptedNode => ({
  lines: [`fail.nvmlInit_v2 = ${code}`],
  gpus: node.gpus.map((gpu) => ({ ...gpu, lines: ['fail.nvmlDeviceGetClockInfo = 1'] })),
});

/** NVLinks of a GPU: `up` of `count` are up, and lead to switches. */
export const links = (count: number, up: number): Numbers =>
  Object.fromEntries(
    Array.from({ length: count }, (_, link) => [
      [`link.${link}`, link < up ? 1 : 0],
      [`link.${link}.type`, 2],
      [`link.${link}.error.1`, 0],
    ]).flat(),
  );
