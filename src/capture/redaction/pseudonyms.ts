import { createHmac, randomBytes } from 'node:crypto';

/** Values that name nothing: zeros and ones. */
const EMPTY = /^[0:_-]+$|^[f:_-]+$/i;

/**
 * Replaces names of one capture by others. Equal names get equal replacements, so that joins hold, and the key is forgotten with the
 * capture: nobody can compute the name from its replacement, nor compare two captures.
 */
export class Pseudonyms {
  readonly #key: Buffer;
  readonly #names = new Map<string, string>();

  constructor(key: Buffer = randomBytes(32)) {
    this.#key = key;
  }

  /** A name of a pod, a namespace and the like, such as `pod-3fa98c01d2`. It is valid wherever Kubernetes accepts a name. */
  name(value: string, prefix: string): string {
    if (value === '') return value;
    const known = this.#names.get(value) ?? `${prefix}-${this.#digest(value).slice(0, 10)}`;
    this.#names.set(value, known);
    return known;
  }

  /** The replacement that {@link Pseudonyms.name} gave; undefined for an unknown name. */
  known(value: string): string | undefined {
    return this.#names.get(value);
  }

  names(): ReadonlyMap<string, string> {
    return this.#names;
  }

  /** Replaces the hexadecimal digits of an identifier. Separators, length and case stay, and do not count: `a-b` and `a_b` give equal digits. */
  hex(value: string): string {
    if (EMPTY.test(value)) return value;
    const digits = value.replaceAll(/[^0-9a-f]/gi, '').toLowerCase();
    const other = this.#digest(digits).repeat(Math.ceil(digits.length / 64));
    let at = 0;
    const text = value.replaceAll(/[0-9a-f]/gi, () => other[at++] as string);
    return value === value.toUpperCase() ? text.toUpperCase() : text;
  }

  /** Replaces digits by digits and letters by letters. The length stays. */
  serial(value: string): string {
    const bytes = Buffer.from(this.#digest(value).repeat(Math.ceil(value.length / 32)), 'hex');
    return [...value]
      .map((char, at) => {
        const byte = bytes[at % bytes.length] as number;
        if (/\d/.test(char)) return String(byte % 10);
        if (/[a-z]/.test(char)) return String.fromCharCode(97 + (byte % 26));
        return /[A-Z]/.test(char) ? String.fromCharCode(65 + (byte % 26)) : char;
      })
      .join('');
  }

  #digest(value: string): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
