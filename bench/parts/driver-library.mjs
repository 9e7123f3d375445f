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
  return count === undefined ? [] : (await addDriver(node, count, ['frozen = 1'])).flags;
}

/**
 * The PCI functions below the node's sysfs, and the library. Unless the script is frozen, a call of it can be made to hang for the first
 * GPUs while an agent runs; `hang` gives the way to let it go on.
 */
export async function addDriver(node, count, lines = []) {
  const { hopper, scriptOf } = await scripted(node.root);
  const gpus = Array.from({ length: count }, (_, index) => ({ ...hopper(index), processes: [] }));
  for (const { values } of gpus) {
    const place = join(node.roots.sysfs, 'bus/pci/devices', values.bus_id.slice(4).toLowerCase());
    mkdirSync(place, { recursive: true });
    for (const [file, text] of Object.entries(PCI_FILES)) writeFileSync(join(place, file), `${text}\n`);
  }
  const library = join(node.root, 'libnvidia-ml.so.1');
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, here('../../test/probes/nvidia/stub/nvml.c')]);
  const write = (machine) => writeFileSync(`${library}.script`, scriptOf({ lines: [...lines, 'moves = 1'], gpus: machine }));
  write(gpus);
  return {
    flags: ['--probe.nvidia.source=nvml', `--probe.nvidia.nvml-library=${library}`],
    ids: gpus.map(({ values }) => values.uuid),
    hang(call, hanging) {
      write(gpus.map((gpu, index) => (index < hanging ? { ...gpu, lines: [`hang.${call} = 1`] } : gpu)));
      return () => writeFileSync(`${library}.script.released`, '');
    },
  };
}

/** The tests' machines, which are written in TypeScript. */
async function scripted(directory) {
  const outfile = join(directory, 'scripted.mjs');
  const source = here('../../test/probes/nvidia/scripted-script.ts');
  await build({ entryPoints: [source], bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'error' });
  return await import(outfile);
}
