import type { Tree } from '../../host/fs/tree.ts';
import { defined } from '../../model/defined.ts';
import { addValues, type Value } from '../../model/metric.ts';
import { parseCount, parseFlag } from '../kit/text.ts';
import { type Counters, readInterface } from './counters.ts';
import type { Interface } from './link-source.ts';
import { PORT_COUNTERS } from './metrics.ts';

/** State of the interface of one port of a physical function. A value that could not be read is absent. */
export interface PortSample {
  /** Number of the port, from 1. */
  readonly port: string;
  readonly interfaceName: string;
  /** Whether the port has a link. False while an administrator has the interface down. */
  readonly isUp?: boolean;
  /** An administrator has the interface up. */
  readonly isEnabled?: boolean;
  /** A read of an earlier collection still hangs. */
  readonly hangs: boolean;
  readonly megabits?: number;
  readonly mtu?: number;
  readonly transmitTimeouts?: Value;
  readonly counters: Counters;
}

/** Limit of the transmit queues that are added. */
const MOST_QUEUES = 1_024;

/**
 * One port of a physical function from the time its interface appears. All paths lead over the PCI function, so an interface of another
 * function that gets the same name is never read.
 */
export class Port {
  readonly interfaceName: string;
  readonly directory: string;
  readonly #sys: Tree;
  readonly #port: string;
  #megabits: number | undefined;
  /** Speed is asked of the driver, so it is read again only when the link changed or the facts are read. */
  readonly #identity: string | undefined;
  #speedOf: string | undefined;
  #transmitTimeouts: Value | undefined;
  #mtu: number | undefined;

  /** `functionDirectory`: directory of the function on the PCI bus. */
  constructor(sys: Tree, functionDirectory: string, interfaceName: string) {
    this.#sys = sys;
    this.interfaceName = interfaceName;
    this.directory = `${functionDirectory}/net/${interfaceName}`;
    this.#identity = sys.identity(this.directory);
    const port = /^\d{1,4}$/.exec(sys.text(`${this.directory}/dev_port`) ?? '')?.[0];
    this.#port = String(Number(port ?? 0) + 1);
  }

  /** False when the interface has another name now, or the function belongs to another card. */
  isThere(): boolean {
    return this.#sys.identity(this.directory) === this.#identity;
  }

  readFacts(): void {
    const { directory } = this;
    this.#speedOf = undefined;
    this.#mtu = numberOf(this.#sys.text(`${directory}/mtu`));
    const queues = this.#sys.list(`${directory}/queues`).filter((name) => /^tx-\d+$/.test(name));
    const counts = queues.slice(0, MOST_QUEUES).map((name) => parseCount(this.#sys.text(`${directory}/queues/${name}/tx_timeout`)));
    this.#transmitTimeouts =
      counts.length === 0 || counts.includes(undefined) ? undefined : counts.reduce<Value>((sum, one = 0) => addValues(sum, one), 0);
  }

  read(): PortSample {
    const { directory } = this;
    const base = { port: this.#port, interfaceName: this.interfaceName };
    const carrier = this.#sys.reread(`${directory}/carrier`);
    if (carrier.error === 'EHUNG') return { ...base, hangs: true, counters: {} };
    const flags = /^0x([0-9a-f]{1,8})$/.exec(this.#sys.reread(`${directory}/flags`).text?.trim() ?? '')?.[1];
    const isEnabled = flags === undefined ? undefined : (Number.parseInt(flags, 16) & 1) === 1;
    const isUp = isEnabled === false ? false : parseFlag(carrier.text ?? '');
    const changes = this.#sys.reread(`${directory}/carrier_changes`).text;
    const state = `${isUp} ${changes ?? ''}`;
    if (isUp === true && this.#speedOf !== state) this.#megabits = speedOf(this.#sys.text(`${directory}/speed`));
    this.#speedOf = changes === undefined ? undefined : state;
    return defined({
      ...base,
      isUp,
      isEnabled,
      hangs: false,
      megabits: isUp === true ? this.#megabits : undefined,
      mtu: this.#mtu,
      transmitTimeouts: this.#transmitTimeouts,
      counters: readInterface(this.#sys, directory, PORT_COUNTERS, 'reread') ?? {},
    });
  }

  /** Number and address of the interface now; undefined when they cannot be read. */
  identify(): Omit<Interface, 'pciAddress'> | undefined {
    const index = numberOf(this.#sys.reread(`${this.directory}/ifindex`).text?.trim());
    const hardwareAddress = this.#sys.reread(`${this.directory}/address`).text?.trim();
    if (index === undefined) return undefined;
    return { name: this.interfaceName, index, ...(hardwareAddress !== undefined && hardwareAddress !== '' && { hardwareAddress }) };
  }
}

/** Megabits per second. Drivers give -1 or an error while they do not know. */
function speedOf(text: string | undefined): number | undefined {
  const speed = numberOf(text);
  return speed === 0 || speed === 0xffff_ffff ? undefined : speed;
}

const numberOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
