import { basename } from 'node:path';
import type { BusHardware } from '../../model/declaration.ts';
import type { Tree } from '../fs/tree.ts';
import { isPciAddress } from './pci.ts';

/** A function of wanted hardware on the bus. Everything comes from the memory of the PCI core, so the read wakes nothing. */
export interface FunctionOnBus {
  readonly address: string;
  readonly hardware: BusHardware;
  /** `0x10de:0x2330`: vendor and device. Functions of one model are alike. */
  readonly model: string;
  /** Name of the driver that is bound; absent when none is. */
  readonly driver?: string;
  /** The only driver that may be bound, when an administrator chose one. */
  readonly wantedDriver?: string;
}

/** Whether the bus may have a physical function of the hardware. It reads ids of functions that it has not seen before. */
export const mayBeOnBus = (sys: Tree, hardware: readonly BusHardware[]): boolean => matching(sys, hardware).length > 0;

/** How long the ids of functions stay known while the list of addresses is the same. */
const IDS_EVERY_MS = 30_000;

/** The physical functions of the hardware on the bus: ids are read again only when the list of addresses changed, or twice a minute. */
export class BusFunctions {
  readonly #sys: Tree;
  readonly #hardware: readonly BusHardware[];
  #last: { readonly names: string; readonly atMs: number; readonly found: readonly Matching[] } | undefined;

  constructor(sys: Tree, hardware: readonly BusHardware[]) {
    this.#sys = sys;
    this.#hardware = hardware;
  }

  /** `nowMs` is monotonic. */
  read(nowMs: number): readonly FunctionOnBus[] {
    const names = this.#sys.list(ON_BUS).join();
    if (this.#last === undefined || this.#last.names !== names || nowMs - this.#last.atMs >= IDS_EVERY_MS)
      this.#last = { names, atMs: nowMs, found: matching(this.#sys, this.#hardware) };
    return this.#last.found.map((found) => withDriver(this.#sys, found));
  }
}

const ON_BUS = 'bus/pci/devices';

type Matching = Pick<FunctionOnBus, 'address' | 'hardware' | 'model'>;

function matching(sys: Tree, hardware: readonly BusHardware[]): readonly Matching[] {
  if (hardware.length === 0) return [];
  return sys.list(ON_BUS).flatMap((address) => {
    if (!isPciAddress(address)) return [];
    const fact = (file: string): string => (sys.text(`${ON_BUS}/${address}/${file}`) ?? '').toLowerCase();
    const vendor = fact('vendor');
    const ofVendor = hardware.filter((one) => one.vendor === undefined || one.vendor === vendor);
    if (ofVendor.length === 0) return [];
    const [code, device] = [fact('class'), fact('device')];
    const found = ofVendor.find(
      ({ classes, devices }) =>
        (classes === undefined || classes.some((prefix) => code.startsWith(`0x${prefix}`))) &&
        (devices === undefined || devices.includes(device)),
    );
    // A virtual function gets its driver from whoever made it.
    if (found === undefined || sys.link(`${ON_BUS}/${address}/physfn`) !== undefined) return [];
    return [{ address, hardware: found, model: `${vendor}:${device}` }];
  });
}

function withDriver(sys: Tree, found: Matching): FunctionOnBus {
  const folder = `${ON_BUS}/${found.address}`;
  const link = sys.link(`${folder}/driver`);
  // The kernel prints "(null)" while nobody chose a driver.
  const wanted = link === undefined ? sys.text(`${folder}/driver_override`) : undefined;
  return {
    ...found,
    ...(link !== undefined && { driver: basename(link) }),
    ...(wanted !== undefined && wanted !== '' && wanted !== '(null)' && { wantedDriver: wanted }),
  };
}
