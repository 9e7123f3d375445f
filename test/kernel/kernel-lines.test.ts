import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { injectErrors, POISONED_TLP } from './support/aer.ts';
import { Guest } from './support/guest.ts';
import { findKernel } from './support/kernel-package.ts';

/** A drive that answers each request after eight seconds, behind a port of its own. */
const DEVICES = [
  ...['-device', 'pcie-root-port,id=slot1,bus=pcie.0,chassis=1,slot=1,addr=0x5'],
  ...['-blockdev', 'null-co,node-name=disk,size=67108864,read-zeroes=on,latency-ns=8000000000'],
  ...['-device', 'nvme,id=ssd,bus=slot1,serial=QEMU0001'],
  ...['-device', 'nvme-ns,drive=disk,bus=ssd,nsid=1'],
];
const CONTROLLER = '0000:01:00.0';
/** Bus and device of the port. */
const PORT = [0, 5] as const;
const SAID = '/run/said.json';
const WAIT = { interval: 500 };

const found = findKernel();
if ('missing' in found) process.stderr.write(`skipped: lines of a kernel's own drivers, ${found.missing}\n`);

describe.skipIf('missing' in found)('the log of a kernel whose drive and port fail', () => {
  let guest: Guest;

  const report = async (): Promise<DeviceReport | undefined> =>
    (JSON.parse(await guest.run(`cat ${SAID}`)) as Collection).reports.find(({ device }) => device.id === CONTROLLER);
  const count = async (type: string): Promise<number | undefined> =>
    (await report())?.outOfBand?.findings.find((finding) => finding.type === type)?.count;

  beforeAll(async () => {
    if ('missing' in found) return;
    guest = new Guest(found.kernel, DEVICES);
    await guest.start();
    await guest.run('modprobe aer_inject; modprobe nvme_core io_timeout=2 && modprobe nvme');
    await guest.run(`"$node" test/kernel/guest/watch-nvme.mjs ${SAID} > /run/watch.log 2>&1 &`);
    await guest.run(`for _ in $(seq 600); do test -s ${SAID} && exit 0; sleep 0.1; done; cat /run/watch.log; exit 1`);
  });

  afterAll(async () => {
    await guest?.stop();
  });

  it('has the timeouts of the drive as the driver prints them', async () => {
    await expect.poll(() => count('CommandTimeouts'), WAIT).toBeGreaterThan(0);
    expect(await guest.run('dmesg')).toMatch(/nvme nvme0: I\/O .*timeout, /);
    expect((await report())?.faults?.map(({ type }) => type)).toContain('CommandTimeout');
  });

  it('has an error of the port above, for the drive', async () => {
    expect(await count('PciePortErrors')).toBe(0);
    await injectErrors(guest, POISONED_TLP, 0, PORT);
    await expect.poll(() => count('PciePortErrors'), WAIT).toBeGreaterThan(0);
    expect(await guest.run('dmesg')).toMatch(/pcieport 0000:00:05\.0: (?:AER: )?PCIe Bus Error: severity=Uncorrect/);
  });
});
