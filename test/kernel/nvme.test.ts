import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { Guest } from './support/guest.ts';
import { findKernel } from './support/kernel-package.ts';

/** A drive of 64 MiB behind a port of its own. Its content is zeros. */
const DEVICES = [
  ...['-device', 'pcie-root-port,id=slot1,bus=pcie.0,chassis=1,slot=1,addr=0x5'],
  ...['-blockdev', 'null-co,node-name=disk,size=67108864,read-zeroes=on'],
  ...['-device', 'nvme,id=ssd,bus=slot1,serial=QEMU0001'],
  ...['-device', 'nvme-ns,drive=disk,bus=ssd,nsid=1'],
];
const CONTROLLER = '0000:01:00.0';
/** The kernel does not use the unique ids of emulated drives, because older ones give all the same. */
const NAMESPACE = `${CONTROLLER}-n1`;
const SAID = '/run/said.json';
const WAIT = { interval: 500 };

const found = findKernel();
if ('missing' in found) process.stderr.write(`skipped: NVMe on a stock kernel, ${found.missing}\n`);

describe.skipIf('missing' in found)("the NVMe probe on a kernel's own driver", () => {
  let guest: Guest;

  const said = async (): Promise<Collection> => JSON.parse(await guest.run(`cat ${SAID}`)) as Collection;
  const reportOf = async (id: string): Promise<DeviceReport | undefined> => (await said()).reports.find(({ device }) => device.id === id);
  const series = async (id: string): Promise<Readonly<Record<string, unknown>>> =>
    Object.fromEntries(
      [...((await reportOf(id))?.read?.readings ?? [])].map(({ metric, labels = {}, value }) => [
        [metric, ...Object.values(labels)].join(' '),
        value,
      ]),
    );
  const holding = async (): Promise<readonly string[]> =>
    ((await reportOf(CONTROLLER))?.read?.findings ?? []).filter(({ status }) => status === true).map(({ type }) => type);

  beforeAll(async () => {
    if ('missing' in found) return;
    guest = new Guest(found.kernel, DEVICES);
    await guest.start();
    await guest.run('modprobe nvme && for _ in $(seq 300); do test -e /sys/block/nvme0n1 && exit 0; sleep 0.1; done; dmesg | tail; exit 1');
    await guest.run(`"$node" test/kernel/guest/watch-nvme.mjs ${SAID} > /run/watch.log 2>&1 &`);
    await guest.run(`for _ in $(seq 300); do test -s ${SAID} && exit 0; sleep 0.1; done; cat /run/watch.log; exit 1`);
  });

  afterAll(async () => {
    await guest?.stop();
  });

  it('names the drive as the kernel does', async () => {
    const { listing, problems, reports } = await said();
    expect([listing, problems]).toEqual(['complete', []]);
    expect(reports.map(({ device: { id, kind, parent, serial } }) => [id, kind, parent, serial])).toEqual([
      [CONTROLLER, 'controller', undefined, 'QEMU0001'],
      [NAMESPACE, 'namespace', CONTROLLER, 'QEMU0001'],
    ]);
    expect(await guest.run('cat /sys/block/nvme0n1/wwid')).toMatch(/^nvme\.1b36-/);
    expect(await series(NAMESPACE)).toMatchObject({ device_nvme_size_bytes: 67_108_864, device_nvme_read_only: 0 });
  });

  it('gives the same temperature by the monitor as the log that the admin command reads', async () => {
    const files = '/sys/class/nvme/nvme0/hwmon*/temp1_input /sys/class/nvme/nvme0/device/hwmon/hwmon*/temp1_input';
    const monitor = Number(await guest.run(`cat ${files} 2> /dev/null; true`));
    const now = await series(CONTROLLER);
    expect(now).toMatchObject({ 'device_nvme_state live': 1, 'device_nvme_critical_warning reliability': 0 });
    // Emulated drives are at 323 K.
    expect([monitor, now['device_temperature_celsius composite']]).toEqual([49_850, 49.85]);
    expect(now.device_nvme_powered_seconds_total).toBe(0);
  });

  it('counts what was read from the drive', async () => {
    await guest.run(
      'dd if=/dev/nvme0n1 of=/dev/null bs=1M count=8 iflag=direct 2> /dev/null || dd if=/dev/nvme0n1 of=/dev/null bs=1M count=8',
    );
    // QEMU 8 and later has a subsystem, so the disk has a path, and kernels before 6.3 count on that one only.
    const counting = 'test "$(cat /sys/block/nvme0n1/queue/iostats)" = 1 && echo nvme0n1 || echo nvme0c0n1';
    const [, , sectors] = (await guest.run(`cat /sys/block/$(${counting})/stat`)).trim().split(/\s+/).map(Number);
    expect(sectors).toBeGreaterThanOrEqual(16_384);
    await expect.poll(async () => (await series(NAMESPACE)).device_nvme_read_bytes_total, WAIT).toBe((sectors as number) * 512);
    const lifetime = (await series(CONTROLLER)).device_nvme_lifetime_read_bytes_total as number;
    expect(lifetime).toBeGreaterThan(7 * 1_048_576);
  });

  it('tells the warnings that the drive gives, and their end', async () => {
    await guest.monitor('qom-set /machine/peripheral/ssd smart_critical_warning 5');
    await expect.poll(holding, WAIT).toEqual(['SpareLow', 'ReliabilityDegraded']);
    await guest.monitor('qom-set /machine/peripheral/ssd smart_critical_warning 0');
    await expect.poll(holding, WAIT).toEqual([]);
  });

  it('tells that the kernel refuses writes', async () => {
    const isReadOnly = async (): Promise<unknown> =>
      (await reportOf(NAMESPACE))?.read?.findings.find(({ type }) => type === 'NamespaceReadOnly')?.status;
    expect(await isReadOnly()).toBe(false);
    await guest.run('busybox blockdev --setro /dev/nvme0n1 || blockdev --setro /dev/nvme0n1');
    await expect.poll(isReadOnly, WAIT).toBe(true);
  });

  it('lists nothing of a drive that was unplugged', async () => {
    await guest.run('echo 1 > /sys/bus/pci/devices/0000:01:00.0/remove');
    await expect.poll(async () => (await said()).reports.length, WAIT).toBe(0);
    await guest.run('echo 1 > /sys/bus/pci/rescan');
    await expect.poll(async () => (await said()).reports.map(({ device }) => device.id), WAIT).toEqual([CONTROLLER, NAMESPACE]);
  });
});
