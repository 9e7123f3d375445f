import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Guest } from './support/guest.ts';
import { findKernel } from './support/kernel-package.ts';

/** A port of generation 4 and 32 lanes, and on it a network card with error reporting. */
const DEVICES = [
  ...['-device', 'pcie-root-port,id=slot1,bus=pcie.0,chassis=1,slot=1,addr=0x5,x-speed=16,x-width=32'],
  ...['-device', 'e1000e,bus=slot1,id=card'],
];
const CARD = '0000:01:00.0';
const SAID = '/run/said.json';
const WAIT = { timeout: 60_000, interval: 200 };
/** Bits of the status registers of Advanced Error Reporting (PCI Express Base Specification). */
const BAD_TLP = 0x40;
const POISONED_TLP = 0x1000;

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
if ('missing' in found) process.stderr.write(`skipped: the kernel's own PCIe files, ${found.missing}\n`);

describe.skipIf('missing' in found)("the PCIe reading on a kernel's own files", () => {
  let guest: Guest;

  const said = async (): Promise<Said> => JSON.parse(await guest.run(`cat ${SAID}`)) as Said;
  /** Errors booked, by severity and kind. */
  const booked = ({ errors }: Aer): Readonly<Record<string, number>> =>
    Object.fromEntries(errors.filter(({ count }) => count > 0).map(({ severity, kind, count }) => [`${severity} ${kind}`, count]));
  /** As the kernel's own tool for it does: bus, device, function, status registers, four words of a header, domain. */
  const inject = async (uncorrectable: number, correctable: number): Promise<void> => {
    const words = [uncorrectable, correctable, 0, 0, 0, 0, 0].flatMap((word) => [...Buffer.from(Uint32Array.of(word).buffer)]);
    const bytes = [1, 0, 0, 0, ...words].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
    await guest.run(`printf '${bytes}' > /dev/aer_inject`);
  };

  beforeAll(async () => {
    if ('missing' in found) return;
    guest = new Guest(found.kernel, DEVICES);
    await guest.start();
    await guest.run('modprobe -a e1000e aer_inject');
    await guest.run(`"$node" test/kernel/guest/watch-pci-function.mjs ${CARD} ${SAID} > /run/watch.log 2>&1 &`);
    await guest.run(`for _ in $(seq 300); do test -s ${SAID} && exit 0; sleep 0.1; done; cat /run/watch.log; exit 1`);
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
      await inject(0, BAD_TLP);
      const file = `/sys/bus/pci/devices/${CARD}/aer_dev_correctable`;
      await expect.poll(() => guest.run(`grep BadTLP ${file}`), WAIT).toBe(`BadTLP ${time + 1}\n`);
    }
    await inject(POISONED_TLP, 0);
    const expected = { 'correctable BadTLP': 3, 'nonfatal TLP': 1 };
    await expect.poll(async () => booked((await said()).aer), WAIT).toEqual(expected);
    expect((await said()).aer.totals).toEqual({ correctable: 3, nonfatal: 1, fatal: 0 });
  });

  it('tells nothing of a card that was unplugged, and begins anew with the next one', async () => {
    await guest.monitor('device_del card');
    await expect.poll(said, WAIT).toEqual({ link: { isAsleep: false }, aer: { errors: [], totals: {} } });
    await guest.monitor('device_add e1000e,bus=slot1,id=another');
    await expect.poll(async () => (await said()).answers, WAIT).toBe(true);
    expect(booked((await said()).aer)).toEqual({});
  });
});
