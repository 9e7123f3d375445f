const UUID = /[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/gi;
/** 16 bytes of an InfiniBand GID: a prefix and the GUID of the port. */
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
/** A GUID in the words of NVIDIA's programs. A number of 16 digits elsewhere may be a counter or a mask. */
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

/** Replaces addresses of networks. A version of four numbers has the same form, so this is not for versions. */
export const redactAddresses = (text: string, ipv6: (value: string) => string, ipv4: (value: string) => string): string =>
  text.replaceAll(IPV6, ipv6).replaceAll(IPV4, ipv4);
