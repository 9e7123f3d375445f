// Runs in the guest: asks one PCI function, whose address is given, again and again as the agent does, and keeps in a file what it said last.
import { renameSync, writeFileSync } from 'node:fs';
import { Tree } from '../../../dist/host/fs/tree.js';
import { readPcie } from '../../../dist/probes/kit/pcie/pcie.js';

const [, , address, file] = process.argv;
const sys = new Tree('/sys');

setInterval(() => {
  writeFileSync(
    `${file}.new`,
    JSON.stringify(readPcie(sys, address), (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );
  renameSync(`${file}.new`, file);
}, 100);
