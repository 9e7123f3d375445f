// A node of H100s, some of them split: the library that the tests play NVIDIA's driver with, whose numbers move at each call, the PCI functions
// below its sysfs, and a program that prints what nvidia-smi would print of the same machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** As a real function has them. */
const PCI_FILES = {
  vendor: '0x10de',
  class: '0x030200',
  numa_node: '0',
  power_state: 'D0',
  config: 'x'.repeat(256),
  aer_dev_correctable: 'RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 0',
  aer_dev_nonfatal: 'Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_NONFATAL 0',
  aer_dev_fatal: 'Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_FATAL 0',
};

/** As little as a program can do. */
const PRINTER = `#include <fcntl.h>
#include <unistd.h>
static char bytes[1 << 20];
int main(void) {
  long length = read(open(DOCUMENT, O_RDONLY), bytes, sizeof bytes);
  for (long at = 0, wrote; at < length; at += wrote)
    if ((wrote = write(1, bytes + at, length - at)) <= 0) return 1;
  return 0;
}
`;

/** What a Hopper board tells of its units. */
const UNITS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 21, 60, 61];
const ACTIVITY = { gpm: 1, ...Object.fromEntries(UNITS.map((id) => [`gpm.${id}`, 37.5])) };

/** Below `folder`, which must not be there yet: `instances` of each GPU, 0 for GPUs that are not split. */
export async function nvidiaNode(folder, { gpus, instances }) {
  for (const path of ['sys/bus/pci/devices', 'proc', 'dev']) mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, 'dev/kmsg'), '');
  const { documentOf, hopper, scriptOf } = await scripted(folder);
  const boards = Array.from({ length: gpus }, (_, index) => gpuOf(hopper, index, instances));
  const machine = { lines: ['frozen = 1', 'moves = 1'], gpus: boards };
  for (const { values } of boards) {
    const pci = join(folder, 'sys/bus/pci/devices', values.bus_id.slice(4).toLowerCase());
    mkdirSync(pci);
    for (const [file, text] of Object.entries(PCI_FILES)) writeFileSync(join(pci, file), `${text}\n`);
  }
  const library = join(folder, 'libnvidia-ml.so.1');
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, here('../../test/probes/nvidia/stub/nvml.c')]);
  writeFileSync(`${library}.script`, scriptOf(machine));
  const document = join(folder, 'document');
  writeFileSync(document, documentOf(machine));
  const printer = join(folder, 'printer');
  writeFileSync(`${printer}.c`, PRINTER.replace('DOCUMENT', JSON.stringify(document)));
  execFileSync('cc', ['-O2', '-o', printer, `${printer}.c`]);
  return { library, document, printer, roots: { sysfs: join(folder, 'sys'), procfs: join(folder, 'proc'), dev: join(folder, 'dev') } };
}

function gpuOf(hopper, index, instances) {
  const gpu = hopper(index, { ...ACTIVITY, ...(instances > 0 ? { mig_current: 1, mig_pending: 1 } : {}) });
  if (instances === 0) return { ...gpu, processes: [] };
  const hidden = Object.fromEntries(Object.entries(gpu.values).filter(([name]) => !/^(?:util_|remap_)/.test(name)));
  const split = Array.from({ length: instances }, (_, at) => ({
    uuid: `MIG-0000000${index}-0000-4000-8000-00000000000${at}`,
    name: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
    gi: 7 + at,
    ci: 0,
    multiprocessors: 16,
    memory_total: 9_984 * 2 ** 20,
    memory_used: 100 * 2 ** 20,
    memory_reserved: 0,
    bar1_total: 2 ** 34,
    bar1_used: 0,
    'ecc.1.0.7': 0,
    ...ACTIVITY,
  }));
  return { ...gpu, values: hidden, processes: [], instances: Object.fromEntries(split.entries()) };
}

/** The tests' machines, which are written in TypeScript. */
async function scripted(folder) {
  const outfile = join(folder, 'scripted.mjs');
  await build({
    stdin: {
      contents: `export { documentOf } from './scripted-document.ts'; export { hopper, scriptOf } from './scripted-script.ts';`,
      resolveDir: here('../../test/probes/nvidia'),
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile,
    logLevel: 'error',
  });
  return await import(outfile);
}
