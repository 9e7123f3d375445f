// Runs in the guest: asks one PCI function, whose address is given, again and again as the agent does, and keeps in a file what was said
// last, by files kept open ("kept") and by files opened each time ("anew"). Absent: the function is not there.
import { renameSync, writeFileSync } from 'node:fs';
import { Tree } from '../../../dist/host/fs/tree.js';
import { PciFunctions } from '../../../dist/host/pci-functions.js';
import { readPcie } from '../../../dist/probes/pcie.js';

const [, , address, file] = process.argv;
const sys = new Tree('/sys');
const functions = new PciFunctions(sys);

let round = 0;
setInterval(() => {
  round += 1;
  const said = { kept: functions.readWithLink(address, round), anew: readPcie(sys, address) };
  writeFileSync(
    `${file}.new`,
    JSON.stringify(said, (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );
  renameSync(`${file}.new`, file);
}, 100);
