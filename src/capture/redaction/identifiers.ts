import type { Pseudonyms } from './pseudonyms.ts';

const UUID = /[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/gi;
/** 16 bytes of an InfiniBand GID: a prefix and the GUID of the port. */
const GID = /(?<![0-9a-f:])((?:[0-9a-f]{4}:){4})((?:[0-9a-f]{4}:){3}[0-9a-f]{4})(?![0-9a-f:])/gi;
const GUID = /(?<![0-9a-f:])(?:[0-9a-f]{4}:){3}[0-9a-f]{4}(?![0-9a-f:])/gi;
/** A MAC address of six bytes, or that of an IPoIB interface, whose last eight bytes are a GUID. */
const MAC = /(?<![0-9a-f:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:])/gi;
const IPOIB = /(?<![0-9a-f:])((?:[0-9a-f]{2}:){12})((?:[0-9a-f]{2}:){7}[0-9a-f]{2})(?![0-9a-f:])/gi;
/** Container ids, UIDs of static pods, hashes. */
const LONG_HEX = /(?<=pod)[0-9a-f]{32}(?![0-9a-z])|(?<![0-9a-z])[0-9a-f]{32,64}(?![0-9a-z])/gi;
/** A GUID in the words of NVIDIA's programs. A number of 16 digits elsewhere may be a counter or a mask. */
const WORDED_GUID = /(guid\W{1,40}?0x)([0-9a-f]{16})(?![0-9a-f])/gi;

/** Replaces the identifiers that can be told by their form. `kept`: those that many machines share, such as the id of an FPGA design. */
export function redactIdentifiers(text: string, pseudonyms: Pseudonyms, kept: ReadonlySet<string>): string {
  const hex = (value: string): string => (kept.has(value.toLowerCase()) ? value : pseudonyms.hex(value));
  return text
    .replaceAll(UUID, hex)
    .replaceAll(IPOIB, (_, head: string, guid: string) => head + hex(guid))
    .replaceAll(MAC, hex)
    .replaceAll(GID, (_, prefix: string, guid: string) => (/^fe80:/i.test(prefix) ? prefix : hex(prefix)) + hex(guid))
    .replaceAll(GUID, hex)
    .replaceAll(LONG_HEX, hex)
    .replaceAll(WORDED_GUID, (_, head: string, guid: string) => head + hex(guid));
}
