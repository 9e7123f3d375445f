import { basename } from 'node:path';
import type { PciSign } from '../../model/declaration.ts';
import type { Tree } from '../fs/tree.ts';
import { isPciAddress } from './pci.ts';

/** A function of wanted hardware on the bus. Everything comes from the memory of the PCI core, so the read wakes nothing. */
export interface FunctionOnBus {
  readonly address: string;
  /** Display name of the hardware: that of its sign. */
  readonly what: string;
  /** `0x10de:0x2330`: vendor and device. Functions of one model are alike. */
  readonly model: string;
  /** Name of the driver that is bound; absent when none is. */
  readonly driver?: string;
  /** The only driver that may be bound, when an administrator chose one. */
  readonly wantedDriver?: string;
  /** A virtual function of another one. */
  readonly isVirtual: boolean;
}

/** Functions on the bus that match one of the signs, by address. */
export function functionsOnBus(sys: Tree, signs: readonly PciSign[]): readonly FunctionOnBus[] {
  return signs.length === 0 ? [] : matching(sys, signs).map((found) => withDriver(sys, found));
}

/** How long the ids of functions stay known while the list of addresses is the same. */
const IDS_EVERY_MS = 30_000;

/** The functions on the bus, for a caller that asks at each refresh: it reads ids again only when the list changed, or twice a minute. */
export class BusFunctions {
  readonly #sys: Tree;
  readonly #signs: readonly PciSign[];
  #last: { readonly names: string; readonly atMs: number; readonly found: readonly Matching[] } | undefined;

  constructor(sys: Tree, signs: readonly PciSign[]) {
    this.#sys = sys;
    this.#signs = signs;
  }

  /** `nowMs` is monotonic. */
  read(nowMs: number): readonly FunctionOnBus[] {
    const names = this.#sys.list(ON_BUS).join();
    if (this.#last === undefined || this.#last.names !== names || nowMs - this.#last.atMs >= IDS_EVERY_MS)
      this.#last = { names, atMs: nowMs, found: matching(this.#sys, this.#signs) };
    return this.#last.found.map((found) => withDriver(this.#sys, found));
  }
}

const ON_BUS = 'bus/pci/devices';

type Matching = Pick<FunctionOnBus, 'address' | 'what' | 'model' | 'isVirtual'>;

function matching(sys: Tree, signs: readonly PciSign[]): readonly Matching[] {
  return sys.list(ON_BUS).flatMap((address) => {
    const fact = (file: string): string => (sys.text(`${ON_BUS}/${address}/${file}`) ?? '').toLowerCase();
    const vendor = isPciAddress(address) ? fact('vendor') : '';
    const ofVendor = signs.filter((sign) => sign.vendor === vendor);
    if (ofVendor.length === 0) return [];
    const [code, device] = [fact('class'), fact('device')];
    const sign = ofVendor.find(
      ({ classes, devices }) =>
        classes.some((prefix) => code.startsWith(`0x${prefix}`)) && (devices === undefined || devices.includes(device)),
    );
    if (sign === undefined) return [];
    const isVirtual = sys.link(`${ON_BUS}/${address}/physfn`) !== undefined;
    return [{ address, what: sign.what, model: `${vendor}:${device}`, isVirtual }];
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
