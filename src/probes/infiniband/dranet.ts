/** A label of DNS as Kubernetes wants the name of a device to be (RFC 1123). */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** RFC 4648, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * The name that DRANET, whose driver is `dra.net`, gives to a device that it knows by its network interface: that of the interface,
 * or, where it is no label of DNS (`eth_0`), `net-` and its bytes in base32 without padding. Source: package `names` of DRANET.
 */
export function dranetName(netdev: string): string {
  return LABEL.test(netdev) ? netdev : `net-${base32(Buffer.from(netdev))}`;
}

function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
}
