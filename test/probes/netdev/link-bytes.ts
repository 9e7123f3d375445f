/** Builds messages as the kernel does. Written from Linux rtnetlink.c, and independent of the parser. */

const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);

export function attribute(type: number, value: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt16LE(4 + value.length, 0);
  header.writeUInt16LE(type, 2);
  return padded(Buffer.concat([header, value]));
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, 4 * at);
  return bytes;
}

export function wide(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

export interface LinkBytes {
  readonly name: string;
  readonly index: number;
  readonly mac?: readonly number[];
  readonly parent?: string;
  readonly functions?: readonly Buffer[];
}

export function message(type: number, sequence: number, body: Buffer): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + body.length, 0);
  header.writeUInt16LE(type, 4);
  header.writeUInt32LE(sequence, 8);
  return padded(Buffer.concat([header, body]));
}

/** RTM_NEWLINK with the attributes that surround the functions on a real machine, too. */
export function newLink(sequence: number, { name, index, mac = [], parent, functions = [] }: LinkBytes): Buffer {
  const info = Buffer.alloc(16);
  info.writeInt32LE(index, 4);
  const list = functions.map((fn) => attribute(1, fn));
  return message(
    16,
    sequence,
    Buffer.concat([
      info,
      attribute(3, Buffer.from(`${name}\0`)),
      attribute(4, words(1_500)),
      ...(mac.length > 0 ? [attribute(1, Buffer.from(mac))] : []),
      attribute(21, words(functions.length)),
      attribute(22 | 0x8000, Buffer.concat(list)),
      ...(parent === undefined ? [] : [attribute(56, Buffer.from(`${parent}\0`))]),
    ]),
  );
}

const STATS: Readonly<Record<string, number>> = {
  rx_packets: 0,
  tx_packets: 1,
  rx_bytes: 2,
  tx_bytes: 3,
  rx_broadcast: 4,
  rx_multicast: 5,
  rx_dropped: 7,
  tx_dropped: 8,
};

/** One IFLA_VF_INFO. -1 is what the kernel writes for a setting that the driver does not tell. */
export function functionBytes(
  number: number,
  stats: Readonly<Record<string, bigint>>,
  { spoof = -1, trust = -1, state = 0, vlan = 0, limit = 0 } = {},
): Buffer {
  const mac = Buffer.concat([words(number), Buffer.alloc(32, 0xab)]);
  const counters = Object.entries(stats).map(([name, value]) => attribute(STATS[name] as number, wide(value)));
  return Buffer.concat([
    attribute(1, mac),
    attribute(2, words(number, vlan, 0)),
    attribute(6, words(number, 0, limit)),
    attribute(3, words(number, limit)),
    attribute(4, words(number, spoof)),
    attribute(5, words(number, state)),
    attribute(7, words(number, -1)),
    attribute(9, words(number, trust)),
    attribute(8, Buffer.concat(counters)),
  ]);
}
