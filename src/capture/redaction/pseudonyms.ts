import { createHmac, randomBytes } from 'node:crypto';

/** Values that name nothing: zeros and ones. */
const EMPTY = /^[0:_.-]+$|^[f:_-]+$/i;
/** After so many collisions all tokens of a length are in use. */
const MOST_TRIES = 100;

/**
 * Replaces names of one capture by others. Equal names get equal replacements, so that joins hold, and the key is forgotten with the
 * capture: a reader can neither compute the name from its replacement nor compare two captures.
 */
export class Pseudonyms {
  readonly #key: Buffer;
  readonly #names = new Map<string, string>();
  readonly #tokens = new Map<string, string>();
  /** Replacements that are taken, so that two short tokens do not become one. */
  readonly #taken = new Set<string>();

  constructor(key: Buffer = randomBytes(32)) {
    this.#key = key;
  }

  /** A name of a pod, a namespace and the like, such as `pod-3fa98c01d2`. It is valid wherever Kubernetes accepts a name. */
  name(value: string, prefix: string): string {
    if (value === '') return value;
    const known = this.#names.get(value);
    if (known !== undefined) return known;
    const digest = this.#digest(value).slice(0, 10);
    this.#taken.add(digest);
    this.#names.set(value, `${prefix}-${digest}`);
    return `${prefix}-${digest}`;
  }

  /** Whether a run of letters and digits is a replacement. */
  isOther(token: string): boolean {
    return this.#taken.has(token);
  }

  /** The replacement that {@link Pseudonyms.name} gave; undefined for an unknown name. */
  known(value: string): string | undefined {
    return this.#names.get(value);
  }

  names(): ReadonlyMap<string, string> {
    return this.#names;
  }

  /** A run of letters and digits that {@link Pseudonyms.token} replaced before, or undefined. */
  knownToken(token: string): string | undefined {
    return this.#tokens.get(token);
  }

  /** Replaces the hexadecimal digits of an identifier. Separators, length and case stay, and do not count: `a-b` and `a_b` give equal digits. */
  hex(value: string): string {
    if (EMPTY.test(value)) return value;
    const digits = value.replaceAll(/[^0-9a-f]/gi, '').toLowerCase();
    const other = this.#digest(digits).repeat(Math.ceil(digits.length / 64));
    let at = 0;
    const text = value.replaceAll(/[0-9a-f]/gi, () => other[at++] as string);
    return /[A-F]/.test(value) && !/[a-f]/.test(value) ? text.toUpperCase() : text;
  }

  /** Another address of the private network 10.0.0.0/8. */
  ipv4(value: string): string {
    if (/^(?:127|0|255)\./.test(value)) return value;
    const bytes = Buffer.from(this.#digest(value), 'hex');
    return `10.${bytes[0]}.${bytes[1]}.${bytes[2]}`;
  }

  /** Replaces a run of letters and digits: digits by digits, letters by letters, a hexadecimal number by another one. */
  token(value: string): string {
    if (EMPTY.test(value)) return value;
    const known = this.#tokens.get(value);
    if (known !== undefined) return known;
    let other = value;
    for (let tries = 0; tries < MOST_TRIES && (other === value || this.#taken.has(other)); tries += 1) other = this.#form(value, tries);
    this.#tokens.set(value, other);
    this.#taken.add(other);
    return other;
  }

  #form(value: string, tries: number): string {
    const [, prefix = '', hex] = /^(0x)?((?=.*\d)(?=.*[a-f])[0-9a-f]{5,}|[0-9a-f]{16}|(?<=0x)[0-9a-f]+)$/i.exec(value) ?? [];
    if (/^\d{17,20}$/.test(value) && tries === 0) return this.#wide(value);
    if (hex !== undefined && tries === 0) return prefix + this.hex(hex);
    const bytes = Buffer.from(this.#digest(`${tries} ${value}`).repeat(Math.ceil(value.length / 32)), 'hex');
    return [...value]
      .map((char, at) => {
        const byte = bytes[at % bytes.length] as number;
        if (/[0-9]/.test(char)) return String(byte % 10);
        return String.fromCharCode((/[A-Z]/.test(char) ? 65 : 97) + (byte % 26));
      })
      .join('');
  }

  /** A number of 64 bits can also be in hexadecimal elsewhere. */
  #wide(value: string): string {
    const other = BigInt(`0x${this.hex(BigInt(value).toString(16).padStart(16, '0'))}`);
    return String(other);
  }

  #digest(value: string): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
