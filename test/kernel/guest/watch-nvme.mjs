// Runs in the guest: collects the NVMe drives again and again as the agent does, and keeps in a file what it said last.
import { renameSync, writeFileSync } from 'node:fs';
import { systemClock } from '../../../dist/host/clock.js';
import { createHost } from '../../../dist/host/host.js';
import { defaultValues } from '../../../dist/model/options.js';
import { family } from '../../../dist/probes/nvme/index.js';

const [, , file] = process.argv;
const host = createHost({ sysfs: '/sys', procfs: '/proc', dev: '/dev' }, systemClock);
// The log and the temperatures are read each time, so that a change shows soon.
const options = { ...defaultValues(family.options), smart: true, 'smart-interval': 0, 'temperature-interval': 1 };
const probe = family.createProbe(host, options);

setInterval(() => {
  const said = probe.collect();
  writeFileSync(
    `${file}.new`,
    JSON.stringify(said, (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );
  renameSync(`${file}.new`, file);
}, 500);
