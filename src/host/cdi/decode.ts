import type { YamlNode } from '../documents/yaml-nodes.ts';

/** A document is no CDI spec. The message says why. */
export class InvalidSpec extends Error {}

/** Makes a value of a node as yaml.v3 of Go does, where absent and null are the empty value. Throws {@link InvalidSpec}. */
export type Decoder<T> = (node: YamlNode | undefined, at: string) => T;

const NULLS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);
const isNothing = (node: YamlNode | undefined): node is undefined =>
  node === undefined || ('text' in node && !node.isQuoted && NULLS.has(node.text));

const wrong = (at: string, wanted: string): InvalidSpec => new InvalidSpec(`${at} is no ${wanted}`);

/** Any scalar, as it stands: `007`, `1.0` and `yes` too. */
export const text: Decoder<string> = (node, at) => {
  if (isNothing(node)) return '';
  if (!('text' in node)) throw wrong(at, 'text');
  return node.text;
};

const TRUE = /^(?:true|True|TRUE|y|Y|yes|Yes|YES|on|On|ON)$/;
const FALSE = /^(?:false|False|FALSE|n|N|no|No|NO|off|Off|OFF)$/;
/** The words of YAML 1.1 count with quotes too, `true` and `false` only without. */
export const boolean: Decoder<boolean> = (node, at) => {
  if (isNothing(node)) return false;
  if (!('text' in node) || !(TRUE.test(node.text) || FALSE.test(node.text)) || (node.isQuoted && /^[tf]/i.test(node.text)))
    throw wrong(at, 'boolean');
  return TRUE.test(node.text);
};

/** A whole number from `least` to below `below`. A fraction is cut off. */
const whole =
  (least: number, below: number): Decoder<number | undefined> =>
  (node, at) => {
    if (isNothing(node)) return undefined;
    const value = 'text' in node && !node.isQuoted ? numberOf(node.text) : undefined;
    if (value === undefined || value < least || value >= below) throw wrong(at, 'whole number in its range');
    return value;
  };
export const int64 = whole(-(2 ** 63), 2 ** 63);
export const uint32 = whole(0, 2 ** 32);

function numberOf(scalar: string): number | undefined {
  const plain = scalar.replaceAll('_', '');
  const [, sign, digits = ''] = /^([+-]?)(0x[0-9a-f]+|0b[01]+|0o?[0-7]+|0|[1-9]\d*)$/i.exec(plain) ?? [];
  const isNumber = sign !== undefined || /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(plain);
  if (!isNumber || scalar.startsWith('_')) return undefined;
  if (sign === undefined) return Math.trunc(Number(plain));
  return (sign === '-' ? -1 : 1) * Number(digits.replace(/^0(?=\d)/, '0o'));
}

/** Null items are left out. */
export const list =
  <T>(of: Decoder<T>): Decoder<readonly T[]> =>
  (node, at) => {
    if (isNothing(node)) return [];
    if (!('items' in node)) throw wrong(at, 'list');
    return node.items.filter((item) => !isNothing(item)).map((item, index) => of(item, `${at}[${index}]`));
  };

/** A null item is an error: the library has a pointer there. */
export const listOfAll =
  <T>(of: Decoder<T>): Decoder<readonly T[]> =>
  (node, at) => {
    if (node !== undefined && 'items' in node && node.items.some(isNothing)) throw new InvalidSpec(`${at} has an empty item`);
    return list(of)(node, at);
  };

export const optional =
  <T>(of: Decoder<T>): Decoder<T | undefined> =>
  (node, at) =>
    isNothing(node) ? undefined : of(node, at);

/** A mapping with any keys. */
export const texts: Decoder<readonly string[]> = (node, at) => {
  if (isNothing(node)) return [];
  if (!('pairs' in node)) throw wrong(at, 'mapping');
  return [...node.pairs].map(([key, value]) => text(value, `${at}.${key}`));
};

/** A mapping with these keys and no others. */
export const record =
  <T extends object>(fields: { readonly [K in keyof T]: Decoder<T[K]> }): Decoder<T> =>
  (node, at) => {
    if (!isNothing(node) && !('pairs' in node)) throw wrong(at, 'mapping');
    const pairs = isNothing(node) ? undefined : node.pairs;
    for (const key of pairs?.keys() ?? []) if (!Object.hasOwn(fields, key)) throw new InvalidSpec(`${at} has the unknown field ${key}`);
    const decoders: [string, Decoder<unknown>][] = Object.entries(fields);
    return Object.fromEntries(decoders.map(([key, decode]) => [key, decode(pairs?.get(key), `${at}.${key}`)])) as T;
  };
