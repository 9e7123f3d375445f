// H100s, some of them split or with NVLinks: the library that the tests play NVIDIA's driver with, whose numbers move at each call, the PCI
// functions below sysfs, and a program that prints what nvidia-smi would print of the same machine.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PCI_FILES = {
  vendor: '0x10de',
  class: '0x030200',
  numa_node: '0',
  power_state: 'D0',
  aer_dev_correctable: 'RxErr 0\nTOTAL_ERR_COR 0',
  aer_dev_nonfatal: 'UnsupReq 0\nTOTAL_ERR_NONFATAL 0',
  aer_dev_fatal: 'MalfTLP 0\nTOTAL_ERR_FATAL 0',
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

/**
 * Puts GPUs on a node, `instances` of each, with NVLinks as {@link linksOf} makes them; gives the paths of the library and of the program.
 * Unless the script is frozen, `hang` makes a call of the library hang for the first GPUs, and gives the way to let it go on.
 */
export async function addDriver({ root, roots }, gpus, { instances = 0, isFrozen = true, links } = {}) {
  const { documentOf, hopper, scriptOf } = await scripted(root);
  const boards = Array.from({ length: gpus }, (_, index) => gpuOf(hopper, index, instances, links));
  const machine = { lines: [...(isFrozen ? ['frozen = 1'] : []), 'moves = 1'], gpus: boards };
  for (const { values } of boards) {
    const pci = join(roots.sysfs, 'bus/pci/devices', values.bus_id.slice(4).toLowerCase());
    mkdirSync(pci, { recursive: true });
    for (const [file, text] of Object.entries(PCI_FILES)) writeFileSync(join(pci, file), `${text}\n`);
  }
  writeFileSync(join(roots.dev, 'kmsg'), '');
  const [library, document, printer] = ['libnvidia-ml.so.1', 'document', 'printer'].map((name) => join(root, name));
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, here('../../test/probes/nvidia/stub/nvml.c')]);
  writeFileSync(`${library}.script`, scriptOf(machine));
  writeFileSync(document, documentOf(machine));
  writeFileSync(`${printer}.c`, PRINTER.replace('DOCUMENT', JSON.stringify(document)));
  execFileSync('cc', ['-O2', '-o', printer, `${printer}.c`]);
  return {
    library,
    printer,
    ids: boards.map(({ values }) => values.uuid),
    options: { source: 'nvml', 'nvml-library': library },
    hang(call, hanging) {
      const sick = boards.map((gpu, index) => (index < hanging ? { ...gpu, lines: [`hang.${call} = 1`] } : gpu));
      writeFileSync(`${library}.script`, scriptOf({ ...machine, gpus: sick }));
      return () => writeFileSync(`${library}.script.released`, '');
    },
  };
}

function gpuOf(hopper, index, instances, links) {
  const { values, fields } = linksOf(links);
  const whole = hopper(index, { ...(instances > 0 ? { mig_current: 1, mig_pending: 1 } : {}), ...values });
  const gpu = { ...whole, fields: { ...whole.fields, ...fields } };
  if (instances === 0) return { ...gpu, processes: [] };
  const split = Array.from({ length: instances }, (_, at) => ({
    uuid: `MIG-0000000${index}-0000-4000-8000-00000000000${at}`,
    name: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
    gi: 7 + at,
    ci: 0,
    multiprocessors: 16,
    memory_total: 9_984 * 2 ** 20,
    memory_used: 100 * 2 ** 20,
    memory_reserved: 0,
  }));
  return { ...gpu, processes: [], instances: Object.fromEntries(split.entries()) };
}

/** Links to switches: errors by counters and traffic in KiB, or both by the fields of NVLink 5. */
function linksOf({ count, isFifth } = { count: 0 }) {
  const values = [];
  const fields = [];
  for (let link = 0; link < count; link += 1) {
    values.push([`link.${link}`, 1], [`link.${link}.type`, 2]);
    if (!isFifth) for (let counter = 0; counter < 5; counter += 1) values.push([`link.${link}.error.${counter}`, 0]);
    for (const id of isFifth ? [202, 204] : [138, 139]) fields.push([`${id} ${link}`, 1_000_000 + link]);
    if (isFifth) for (let id = 206; id <= 215; id += 1) fields.push([`${id} ${link}`, 0]);
  }
  return { values: Object.fromEntries(values), fields: Object.fromEntries(fields) };
}

/** The tests' machines, which are written in TypeScript. */
async function scripted(folder) {
  const outfile = join(folder, 'scripted.mjs');
  const contents = `export { documentOf } from './scripted-document.ts'; export { hopper, scriptOf } from './scripted-script.ts';`;
  const stdin = { contents, resolveDir: here('../../test/probes/nvidia') };
  await build({ stdin, bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'error' });
  return await import(outfile);
}
