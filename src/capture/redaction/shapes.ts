import type { Vocabulary } from '../../model/known-text.ts';
import type { Pseudonyms } from './pseudonyms.ts';

/**
 * How much of a text is known. `values`: numbers and words. `texts`: a model or a version. `names`: names that the kernel gives.
 * `nothing`: the text can be an identity.
 */
export type Shape = 'values' | 'texts' | 'names' | 'nothing';

const FIRST_HELD = 0xf_0000;
const MOST_HELD = 0x2_0000;
const HELD = /[\u{F0000}-\u{10FFFF}]/gu;
/** A run of letters and digits. */
const TOKEN = /[\p{L}\p{N}\uFFFD]+/gu;
const ASCII_TOKEN = /[A-Za-z0-9]+/g;
const FIRST_TOKEN = /^[A-Za-z0-9]+/;
const ALPHANUMERIC = /^[A-Za-z0-9]/;
const WORD = /^[A-Za-z]{1,32}$/;
/**
 * Names of devices and interfaces. A word with one number has this form: `eth0`, `sda1`; and names of systemd and of drivers with several
 * numbers: `ens1f0np0`, `pf0vf3`, and of counters: `ip4InOctets`. Every other mix of letters and digits, such as `sn12ab34cd56`, can be a serial number.
 */
const KERNEL_NAME =
  /^(?:[a-z]{1,10}\d{1,3}|(?:en|ib|wl|sl|ww|eth\d)(?:(?:np|[opsdfbnvciu])\d{1,5})+|[a-z]{1,4}\d(?:[A-Z][a-z]{1,12}){1,4}|(?:c\d)?pf\d{1,2}(?:hpf|[vs]f\d{1,3})?)$/;
/** `GPU0`, `renderD128`, `80GB`, `D3hot`, `4X`. */
const MIXED = /^(?:[A-Za-z]{1,7}\d{1,3}|\d{1,4}[A-Za-z]{1,4}|[A-Z]\d[a-z]{1,5})$/;
/** Half of a word: vendors and devices of PCI, parts of PCI addresses. */
const SHORT_HEX = /^[0-9a-f]{1,4}$/i;
const NUMBER = /^(?:\d{1,20}|0x[0-9a-f]{1,16})$/i;
const SHORT_NUMBER = /^(?:\d{1,6}|0x[0-9a-f]{1,8}|0{4}[0-9a-f]{4}|10000)$/i;
/** Words that say what kind of identity follows, and numbers of a format. */
const FORMAT_WORD = /^(?:uuid|n?\d{1,2})$/;
/** A host name with its domain. */
const DOMAIN_NAME = /(?<![\w.-])[a-z0-9][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+\.[a-z]{2,}(?![\w-])/gi;
/** Shorter words are parts of many texts, and a name of the kernel is no identity where it occurs by chance. */
const isTelling = (token: string): boolean => token.length >= 6 && /\d/.test(token) && !KERNEL_NAME.test(token) && !MIXED.test(token);

const isKnown: Readonly<Record<Exclude<Shape, 'nothing'>, (token: string) => boolean>> = {
  values: (token) => WORD.test(token) || NUMBER.test(token) || KERNEL_NAME.test(token) || MIXED.test(token) || SHORT_HEX.test(token),
  names: (token) => WORD.test(token) || SHORT_NUMBER.test(token) || KERNEL_NAME.test(token) || MIXED.test(token) || SHORT_HEX.test(token),
  texts: () => true,
};

/** Replaces what is not known in texts of one capture, token by token, so that equal tokens stay equal and the format stays. */
export class Shapes {
  readonly #pseudonyms: Pseudonyms;
  readonly #kept: ReadonlySet<string>;
  readonly #formats: ReadonlySet<string>;
  readonly #worldwide: readonly string[];
  readonly #deviceNames: readonly RegExp[];
  /** Names that are replaced in every text, by their first run of letters and digits, the longest first. */
  readonly #names = new Map<string, readonly string[]>();

  /** `kept`: identifiers that many machines share, in lower case. */
  constructor(
    pseudonyms: Pseudonyms,
    kept: ReadonlySet<string>,
    families: readonly Pick<Vocabulary, 'formats' | 'worldwide' | 'deviceNames'>[],
  ) {
    this.#formats = new Set(families.flatMap(({ formats = [] }) => formats));
    this.#deviceNames = families.flatMap(({ deviceNames = [] }) => deviceNames);
    this.#worldwide = families.flatMap(({ worldwide = [] }) => worldwide);
    this.#pseudonyms = pseudonyms;
    this.#kept = kept;
  }

  /** From now on these names are replaced in every text, where they are not a part of a longer word. */
  replaceNames(names: readonly string[]): void {
    this.#names.clear();
    for (const name of [...names].sort((a, b) => b.length - a.length)) {
      const first = FIRST_TOKEN.exec(name)?.[0];
      if (first !== undefined) this.#names.set(first, [...(this.#names.get(first) ?? []), name]);
    }
  }

  redact(text: string, shape: Shape): string {
    const held: string[] = [];
    // A replaced identifier must not be replaced again as a token: one character of a private plane replaces it until the end.
    const hold = (other: string): string => (held.length < MOST_HELD ? String.fromCodePoint(FIRST_HELD + held.push(other) - 1) : other);
    const hex = (value: string): string => hold(this.#kept.has(value.toLowerCase()) ? value : this.#pseudonyms.hex(value));
    let result = text.replaceAll(HELD, '?');
    result = this.#withoutNames(result, hold);
    result = redactIdentifiers(result, hex, (value) => hold(this.#pseudonyms.token(value)));
    if (shape !== 'texts') result = redactAddresses(result, hex, (value) => hold(this.#pseudonyms.ipv4(value)));
    if (shape === 'values' || shape === 'names')
      result = result.replaceAll(DOMAIN_NAME, (name) => hold(this.#pseudonyms.name(name, 'host')));
    return result
      .replaceAll(TOKEN, (token) =>
        this.#token(token, shape === 'names' && this.#worldwide.some((begin) => text.startsWith(begin)) ? 'nothing' : shape),
      )
      .replaceAll(HELD, (char) => held[(char.codePointAt(0) as number) - FIRST_HELD] as string);
  }

  /** A machine can have thousands of names, so each word of the text is looked up, and not each name searched. */
  #withoutNames(text: string, hold: (other: string) => string): string {
    if (this.#names.size === 0) return text;
    let [result, done] = ['', 0];
    for (const { 0: token, index } of text.matchAll(ASCII_TOKEN)) {
      if (index < done) continue;
      const name = this.#names
        .get(token)
        ?.find((one) => text.startsWith(one, index) && !ALPHANUMERIC.test(text.charAt(index + one.length)));
      if (name === undefined) continue;
      result += text.slice(done, index) + hold(this.#pseudonyms.known(name) ?? '?');
      done = index + name.length;
    }
    return result + text.slice(done);
  }

  #token(token: string, shape: Shape): string {
    if (this.#pseudonyms.isOther(token) || this.#kept.has(token.toLowerCase()) || (shape === 'values' && NUMBER.test(token))) return token;
    const told = isTelling(token) ? this.#pseudonyms.knownToken(token) : undefined;
    const isWord =
      this.#formats.has(token) ||
      (shape === 'nothing' ? FORMAT_WORD.test(token) : isKnown[shape](token) || this.#deviceNames.some((name) => name.test(token)));
    return told ?? (isWord ? token : this.#pseudonyms.token(token));
  }
}

const UUID = /[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/gi;
/** 16 bytes of the GID of a port: a prefix and the GUID of the port. */
const GID = /(?<![0-9a-f:])((?:[0-9a-f]{4}:){4})((?:[0-9a-f]{4}:){3}[0-9a-f]{4})(?![0-9a-f:])/gi;
const GUID = /(?<![0-9a-f:])(?:[0-9a-f]{4}:){3}[0-9a-f]{4}(?![0-9a-f:])/gi;
/** Bytes of a MAC address, an EUI-64, a WWN or a key, with one separator. */
const PAIRS = /(?<![0-9a-z:])(?=[0-9 ]{0,40}[-:a-f])[0-9a-f]{2}([-: ])(?:[0-9a-f]{2}\1){4,}[0-9a-f]{2}(?![0-9a-z:])/gi;
/** A MAC address in the notation of switches. */
const DOTTED_MAC = /(?<![0-9a-z.])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![0-9a-z.])/gi;
/** The hardware address of an IPoIB interface: its last eight bytes are a GUID. */
const IPOIB = /(?<![0-9a-f:])((?:[0-9a-f]{2}:){12})((?:[0-9a-f]{2}:){7}[0-9a-f]{2})(?![0-9a-f:])/gi;
/** Container ids, UIDs of static pods, hashes, WWNs, EUI-64. */
const LONG_HEX = /(?<=pod)[0-9a-f]{32}(?![0-9a-z])|(?<![0-9a-z])[0-9a-f]{32,}(?![0-9a-z])/gi;
/** A GUID behind the word `guid`, as programs of vendors print it. A number of 16 digits elsewhere may be a counter or a mask. */
const WORDED_GUID = /(guid\W{1,40}?0x)([0-9a-f]{16})(?![0-9a-f])/gi;
/** A number behind a word that says what it is. */
const WORDED_NUMBER = /(?<=(?:unique_id|serial\w{0,8})\W{1,3})\d{5,20}(?!\w)/gi;
const IPV4 = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])/g;
const IPV6 = /(?<![\w:.])(?=[0-9a-f:]*::|(?:[0-9a-f]+:){7})(?:[0-9a-f]{1,4})?(?::{1,2}[0-9a-f]{1,4}){1,7}(?:::)?(?![\w:])/gi;

/** Replaces the identifiers that have a form of their own. `hex` gets one with its separators, `decimal` a number. */
export function redactIdentifiers(text: string, hex: (value: string) => string, decimal: (value: string) => string): string {
  return text
    .replaceAll(UUID, (value) => hex(value))
    .replaceAll(IPOIB, (_, head: string, guid: string) => hex(head) + hex(guid))
    .replaceAll(PAIRS, (value) => hex(value))
    .replaceAll(DOTTED_MAC, hex)
    .replaceAll(GID, (_, prefix: string, guid: string) => (/^fe80:/i.test(prefix) ? prefix : hex(prefix)) + hex(guid))
    .replaceAll(GUID, hex)
    .replaceAll(LONG_HEX, hex)
    .replaceAll(WORDED_GUID, (_, head: string, guid: string) => head + hex(guid))
    .replaceAll(WORDED_NUMBER, (value) => decimal(value));
}

/** Replaces IPv4 and IPv6 addresses. It is not for versions: the version `1.2.3.4` looks like an IPv4 address. */
export const redactAddresses = (text: string, ipv6: (value: string) => string, ipv4: (value: string) => string): string =>
  text.replaceAll(IPV6, ipv6).replaceAll(IPV4, ipv4);
