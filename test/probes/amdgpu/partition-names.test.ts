import { expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { buildMachine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

it.each([
  ['mi300x-cpx-one-partition-missing', /^amdgpu_xcp_\d+$/],
  ['partitions-with-a-dot', /^amdgpu_xcp\.\d+$/],
])('partitions of %s have the name and the nodes of their platform device', async (name, form) => {
  const { root, options, remove } = buildMachine(readMachine(`test/probes/amdgpu/${name}/machine.yaml`));
  const host = createHost({ sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` }, systemClock);
  const probe = family.createProbe(host, probeOptions(family, options));
  try {
    const later = (await probe.collect()).reports.filter(({ device }) => device.kind === 'partition' && !device.id.endsWith('xcp0'));
    expect(later.length).toBeGreaterThan(0);
    for (const { device } of later) {
      expect(device.aliases[0]).toMatch(form);
      // ROCm's device plugin may spell it with an underscore where the kernel has a dot.
      const spelt = (device.aliases[0] as string).replace('.', '_');
      expect(device.aliases).toContain(spelt);
      expect(device.characterDevices?.length).toBeGreaterThan(1);
    }
  } finally {
    await probe.close?.();
    remove();
  }
});
