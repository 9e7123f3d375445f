import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseKmsgRecord } from '../../src/host/kernel-log/record.ts';
import { forgedNames } from '../support/forged-records.ts';
import { seriesValue } from '../support/serve.ts';
import { findKernel } from './support/kernel-package.ts';
import { KernelMachine } from './support/machine.ts';

/** A GPU of NVIDIA and a card of Intel on the simulated node. */
const [GPU, CARD] = ['0008:01:00.0', '0030:10:00.0'];
const ofNvidia = (name: string): boolean => /NVRM|nvswitch/.test(name);
const names = [...Object.values(forgedNames(GPU)).filter(ofNvidia), ...Object.values(forgedNames(CARD)).filter((name) => !ofNvidia(name))];
const FAMILIES = ['amdgpu', 'fpga', 'infiniband', 'intelgpu', 'netdev', 'nvidia', 'nvme'];

const found = findKernel();
if ('missing' in found) process.stderr.write(`skipped: forged records of the kernel log, ${found.missing}\n`);

describe.skipIf('missing' in found)('the log of a kernel on which processes imitate drivers', () => {
  let guest: KernelMachine;

  const conditions = (page: string): readonly string[] =>
    page.split('\n').filter((line) => /^device_(health_condition|healthy|nvidia_xid|intelgpu_hardware)/.test(line));

  beforeAll(async () => {
    if ('missing' in found) return;
    guest = new KernelMachine(found.kernel, [], ['log_buf_len=8M']);
    await guest.start();
    const devices = ['all=0', ...FAMILIES.map((family) => `${family}=1`)].join(',');
    await guest.startDemo(`--sim.story=off --sim.pods=0 --refresh.interval=2s --sim.devices=${devices} --path.kmsg=/dev/kmsg`);
  });

  afterAll(async () => {
    await guest?.stop();
  });

  it('raises no condition on any family', async () => {
    const isRead = (page: string): boolean =>
      FAMILIES.every((family) => (seriesValue(page, 'device_agent_probe_runs_total', { family }) ?? 0) >= 2);
    const before = await guest.until('devices of all families', isRead);
    expect(conditions(before).length).toBeGreaterThan(10);

    const encoded = Buffer.from(JSON.stringify(names)).toString('base64');
    await guest.run(`"$node" test/kernel/guest/forge.mjs ${encoded} /lib/modules`);
    for (const family of ['nvidia', 'intelgpu']) await guest.refreshed(family);
    expect(conditions(await guest.page())).toEqual(conditions(before));
  });

  it('has all these records, and none counts as one of the kernel alone', async () => {
    const log = await guest.run('dd if=/dev/kmsg iflag=nonblock bs=8192 2> /dev/null; true');
    const records = log.split(/\n(?! )/).flatMap((text) => parseKmsgRecord(text) ?? []);
    const count = (origin: string, text: RegExp): number =>
      records.filter((record) => record.origin === origin && text.test(record.text)).length;
    // Each name is that of a program's file, and one that a process gave itself.
    expect(count('about-process', / segfault at 0 ip /)).toBeGreaterThanOrEqual(2 * names.length);
    expect(count('about-process', /^traps: .*invalid opcode/)).toBe(names.length);
    expect(count('about-process', / invoked oom-killer: /)).toBeGreaterThanOrEqual(3);
    expect(count('about-process', /: module verification failed/)).toBe(1);
    expect(count('program', /NVRM|Hardware Error|\bxe\b|i915|nvswitch|pcieport|nvme|^00|\[drm\]/)).toBeGreaterThanOrEqual(
      4 * names.length - 4,
    );
    expect(records.filter(({ origin, text }) => origin === 'kernel' && /NVRM|nvswitch|wedged|fallen off/.test(text))).toEqual([]);
  });
});
