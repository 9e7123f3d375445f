/** Parses a register: `0x1f`, or a decimal number (older drivers print zero without a prefix). */
export function parseRegister(text: string): bigint | undefined {
  const trimmed = text.trim();
  return /^(?:0x[0-9a-f]{1,32}|\d{1,20})$/i.test(trimmed) ? BigInt(trimmed) : undefined;
}

/** Parses `0`, `1`, `0x0` or `0x1`. */
export function parseFlag(text: string): boolean | undefined {
  const value = parseRegister(text);
  return value === 0n ? false : value === 1n ? true : undefined;
}

/** Parses an unsigned decimal counter of 64 bits. The result is a number while that is exact, otherwise a bigint. */
export function parseCount(text: string): number | bigint | undefined {
  const trimmed = text.trim();
  if (!/^\d{1,20}$/.test(trimmed)) return undefined;
  const value = BigInt(trimmed);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** Parses an identifier of 128 bits, with or without dashes. Returns it in lower case without dashes. */
export function parseId(text: string): string | undefined {
  const id = text.trim().replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) ? id : undefined;
}

/** Returns true when all bits of an identifier or of a 64-bit register are set, which means that the board does not answer. */
export function isAllOnes(value: string | bigint): boolean {
  return typeof value === 'bigint' ? value === 0xffff_ffff_ffff_ffffn : /^f{16,}$/.test(value);
}

/** Returns the positions of the set bits, lowest first. */
export function setBits(mask: bigint): number[] {
  const bits: number[] = [];
  for (let bit = 0, rest = mask; rest > 0n; bit += 1, rest >>= 1n) if ((rest & 1n) === 1n) bits.push(bit);
  return bits;
}

export const hex = (value: bigint): string => `0x${value.toString(16)}`;
