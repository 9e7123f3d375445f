import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriesValue } from '../support/serve.ts';
import { BAD_TLP, injectErrors, POISONED_TLP } from './support/aer.ts';
import { findKernel } from './support/kernel-package.ts';
import { KernelMachine } from './support/machine.ts';

/**
 * A port of generation 4 and 32 lanes, and on it a network card with error reporting. On another port one that also signals errors, which
 * of QEMU's network cards only virtio does.
 */
const DEVICES = [
  ...['-device', 'pcie-root-port,id=slot1,bus=pcie.0,chassis=1,slot=1,addr=0x5,x-speed=16,x-width=32'],
  ...['-device', 'e1000e,bus=slot1,id=card'],
  ...['-device', 'pcie-root-port,id=slot2,bus=pcie.0,chassis=2,slot=2,addr=0x6'],
  ...['-device', 'virtio-net-pci,bus=slot2,id=signaller,aer=on'],
];
const CARD = '0000:01:00.0';
const SIGNALLER = '0000:02:00.0';
const SIGNALLER_PORT = '0000:00:06.0';
/** All network functions, because none of these has virtual functions. */
const CONFIG = `
refresh: { interval: 500ms, timeout: 2m }
probe: { netdev: { all: true } }
health:
  conditions:
    netdev.AerCorrectable: { threshold: { growth: 2, window: 1h } }
    netdev.AerNonfatal: { threshold: { growth: 0, window: 1h } }`;
const SAID = '/run/said.json';
const WAIT = { interval: 200 };

interface Aer {
  readonly errors: readonly { readonly severity: string; readonly kind: string; readonly count: number }[];
  readonly totals: Readonly<Record<string, number>>;
}
interface Said {
  readonly aer: Aer;
  readonly answers?: boolean;
  readonly link: Readonly<Record<string, unknown>>;
}

const found = findKernel();
/** QEMU before 8 does not pass errors on from a card to its port. It is known by the device that came with that release. */
const passesErrorsOn = 'kernel' in findKernel([], ['igb']);
if ('missing' in found) process.stderr.write(`skipped: the kernel's own PCIe files, ${found.missing}\n`);

describe.skipIf('missing' in found)("the PCIe reading on a kernel's own files", () => {
  let guest: KernelMachine;

  const said = async (): Promise<Said> => JSON.parse(await guest.run(`cat ${SAID}`)) as Said;
  /** Errors booked, by severity and kind. */
  const booked = ({ errors }: Aer): Readonly<Record<string, number>> =>
    Object.fromEntries(errors.filter(({ count }) => count > 0).map(({ severity, kind, count }) => [`${severity} ${kind}`, count]));

  beforeAll(async () => {
    if ('missing' in found) return;
    guest = new KernelMachine(found.kernel, DEVICES);
    await guest.start();
    await guest.run('modprobe -a e1000e aer_inject');
    await guest.run(`"$node" test/kernel/guest/watch-pci-function.mjs ${CARD} ${SAID} > /run/watch.log 2>&1 &`);
    await guest.run(`for _ in $(seq 300); do test -s ${SAID} && exit 0; sleep 0.1; done; cat /run/watch.log; exit 1`);
    await guest.startAgent(CONFIG);
  });

  afterAll(async () => {
    await guest?.stop();
  });

  it('tells link, width and power as the files of card and port do', async () => {
    const { link, answers } = await said();
    const text = async (path: string): Promise<string> => (await guest.run(`cat /sys/bus/pci/devices/${path}`)).trim();
    expect(await text(`${CARD}/current_link_speed`)).toBe('2.5 GT/s PCIe');
    expect(await text('0000:00:05.0/max_link_speed')).toBe('16.0 GT/s PCIe');
    expect(link).toEqual({
      powerState: await text(`${CARD}/power_state`),
      isAsleep: false,
      width: Number(await text(`${CARD}/current_link_width`)),
      widthMax: Number(await text(`${CARD}/max_link_width`)),
      generation: 1,
      generationMax: 1,
      upstreamWidthMax: 32,
      upstreamGenerationMax: 4,
    });
    expect(answers).toBe(true);
  });

  it('books errors as the kernel does', async () => {
    const { aer } = await said();
    expect(booked(aer)).toEqual({});
    expect(aer.totals).toEqual({ correctable: 0, nonfatal: 0, fatal: 0 });
    const kinds = await guest.run(`cat /sys/bus/pci/devices/${CARD}/aer_dev_{correctable,nonfatal,fatal} | grep -vc TOTAL`);
    expect(aer.errors).toHaveLength(Number(kinds));
    for (let time = 0; time < 3; time += 1) {
      await injectErrors(guest, 0, BAD_TLP);
      const file = `/sys/bus/pci/devices/${CARD}/aer_dev_correctable`;
      await expect.poll(() => guest.run(`grep BadTLP ${file}`), WAIT).toBe(`BadTLP ${time + 1}\n`);
    }
    await injectErrors(guest, POISONED_TLP, 0);
    const expected = { 'correctable BadTLP': 3, 'nonfatal TLP': 1 };
    await expect.poll(async () => booked((await said()).aer), WAIT).toEqual(expected);
    expect((await said()).aer.totals).toEqual({ correctable: 3, nonfatal: 1, fatal: 0 });
  });

  it.skipIf(!passesErrorsOn)('counts and judges the errors that a card signals to its port', async () => {
    /** What the kernel booked for the card, and fatal errors at the port, by severity and kind. */
    const kernel = async (): Promise<ReadonlyMap<string, number>> => {
      const text = await guest.run(`cd /sys/bus/pci/devices/${SIGNALLER} && grep -v TOTAL aer_dev_{correctable,nonfatal,fatal}`);
      const lines = [...text.matchAll(/^aer_dev_(\w+):(\w+) (\d+)$/gm)].map(([, severity, kind, count]) => [severity, kind, count]);
      const fatal = await guest.run(`cat /sys/bus/pci/devices/${SIGNALLER_PORT}/aer_rootport_total_err_fatal`);
      return new Map([...lines, ['fatal', 'RootPort', fatal]].map(([severity, kind, count]) => [`${severity} ${kind}`, Number(count)]));
    };
    const told = (page: string, name: string): number | undefined => {
      const [severity = '', kind = ''] = name.split(' ');
      return seriesValue(page, 'device_pcie_errors_total', { device: SIGNALLER, severity, kind });
    };
    const holds = (page: string, condition: string): boolean =>
      seriesValue(page, 'device_health_condition', { device: SIGNALLER, condition, reason: 'CounterGrows' }) === 1;
    const signal = async (error: string): Promise<void> => {
      const before = [...(await kernel()).values()].reduce((a, b) => a + b);
      await guest.monitor(`pcie_aer_inject_error signaller ${error}`);
      await expect.poll(async () => [...(await kernel()).values()].reduce((a, b) => a + b), WAIT).toBe(before + 1);
    };

    const sound = await guest.until('the card', (page) => seriesValue(page, 'device_healthy', { device: SIGNALLER }) === 1);
    for (const [name, count] of await kernel()) expect([name, count, told(sound, name)]).toEqual([name, 0, 0]);
    for (const error of ['RCVR', 'BAD_TLP', 'BAD_DLLP', 'POISON_TLP']) await signal(error);
    const worn = await guest.until('both conditions', (page) => holds(page, 'AerCorrectable') && holds(page, 'AerNonfatal'));
    const once = ['correctable RxErr', 'correctable BadTLP', 'correctable BadDLLP', 'nonfatal TLP'];
    for (const [name, count] of await kernel())
      expect([name, count, told(worn, name)]).toEqual([name, ...(once.includes(name) ? [1, 1] : [0, 0])]);
    expect(holds(worn, 'AerFatal')).toBe(false);
    expect(seriesValue(worn, 'device_healthy', { device: SIGNALLER })).toBe(1);

    await signal('MALF_TLP');
    const broken = await guest.until('unhealthy', (page) => seriesValue(page, 'device_healthy', { device: SIGNALLER }) === 0);
    expect(holds(broken, 'AerFatal')).toBe(true);
    expect(told(broken, 'fatal RootPort')).toBe(1);
    for (const [name, count] of await kernel()) expect([name, told(broken, name)]).toEqual([name, count]);
    const other = { device: CARD, condition: 'AerFatal' };
    expect(seriesValue(broken, 'device_health_condition', other), 'the card on the other port').toBeUndefined();
  });

  it('tells nothing of a card that was unplugged, and begins anew with the next one', async () => {
    await guest.monitor('device_del card');
    await expect.poll(said, WAIT).toEqual({ link: { isAsleep: false }, aer: { errors: [], totals: {} } });
    await guest.monitor('device_add e1000e,bus=slot1,id=another');
    await expect.poll(async () => (await said()).answers, WAIT).toBe(true);
    expect(booked((await said()).aer)).toEqual({});
  });
});
