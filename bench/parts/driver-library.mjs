// The library that the tests play NVIDIA's driver with, scripted as a machine of H100s whose numbers move at each call.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PCI_FILES = { vendor: '0x10de', class: '0x030200', numa_node: '0', aer_dev_correctable: 'RxErr 0\nTOTAL_ERR_COR 0' };

/** Puts `count` GPUs on a node, none by default, and gives the flags by which an agent finds them through their driver's library. */
export async function driverFlags(node, count) {
  if (count === undefined) return [];
  return ['--probe.nvidia.source=nvml', `--probe.nvidia.nvml-library=${await addDriverLibrary(node, count)}`];
}

/** The PCI functions below the node's sysfs, and the library, whose path it gives back. */
async function addDriverLibrary(node, count) {
  const { hopper, scriptOf } = await scripted(node.root);
  const gpus = Array.from({ length: count }, (_, index) => ({ ...hopper(index), processes: [] }));
  for (const { values } of gpus) {
    const place = join(node.roots.sysfs, 'bus/pci/devices', values.bus_id.slice(4).toLowerCase());
    mkdirSync(place, { recursive: true });
    for (const [file, text] of Object.entries(PCI_FILES)) writeFileSync(join(place, file), `${text}\n`);
  }
  const library = join(node.root, 'libnvidia-ml.so.1');
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, here('../../test/probes/nvidia/stub/nvml.c')]);
  writeFileSync(`${library}.script`, scriptOf({ lines: ['frozen = 1', 'moves = 1'], gpus }));
  return library;
}

/** The tests' machines, which are written in TypeScript. */
async function scripted(directory) {
  const outfile = join(directory, 'scripted.mjs');
  const source = here('../../test/probes/nvidia/scripted-script.ts');
  await build({ entryPoints: [source], bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'error' });
  return await import(outfile);
}
