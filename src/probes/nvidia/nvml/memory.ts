/** Memory into which the library writes its answers. It never moves, so its address is constant. */
export class Memory {
  /** Addresses of a process are below 2^53, so a number is exact. */
  readonly address: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;

  constructor(size: number, addressOf: (buffer: Buffer) => bigint) {
    this.#bytes = Buffer.from(new ArrayBuffer(size));
    this.#view = new DataView(this.#bytes.buffer);
    this.address = Number(addressOf(this.#bytes));
  }

  get size(): number {
    return this.#bytes.length;
  }

  u8(offset: number): number {
    return this.#view.getUint8(offset);
  }

  u16(offset: number): number {
    return this.#view.getUint16(offset, true);
  }

  u32(offset: number): number {
    return this.#view.getUint32(offset, true);
  }

  i32(offset: number): number {
    return this.#view.getInt32(offset, true);
  }

  f64(offset: number): number {
    return this.#view.getFloat64(offset, true);
  }

  /** Exact up to 2^53 and rounded above it. No counter of a GPU reaches 2^53. */
  u64(offset: number): number {
    return this.#view.getUint32(offset + 4, true) * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  i64(offset: number): number {
    return this.#view.getInt32(offset + 4, true) * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  /** Returns a pointer in a form that can be passed to a call. */
  pointer(offset: number): number | bigint {
    const high = this.#view.getUint32(offset + 4, true);
    if (high >= 2 ** 21) return this.#view.getBigUint64(offset, true);
    return high * 2 ** 32 + this.#view.getUint32(offset, true);
  }

  /** Returns the text up to its terminating zero. */
  text(offset: number, length: number): string {
    const end = this.#bytes.indexOf(0, offset);
    return this.#bytes.toString('utf8', offset, end < 0 || end > offset + length ? offset + length : end);
  }

  /** Returns sixteen bytes as `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
  uuid(offset: number): string {
    const digits = this.#bytes.toString('hex', offset, offset + 16);
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  setU32(offset: number, value: number): void {
    this.#view.setUint32(offset, value, true);
  }

  setPointer(offset: number, value: number | bigint): void {
    if (typeof value === 'bigint') this.#view.setBigUint64(offset, value, true);
    else {
      this.#view.setUint32(offset, value % 2 ** 32, true);
      this.#view.setUint32(offset + 4, value / 2 ** 32, true);
    }
  }

  /** Copies bytes from an address of this memory on; undefined when the address is not in it. */
  copyFrom(address: number): Buffer | undefined {
    const offset = address - this.address;
    return offset < 0 || offset >= this.size ? undefined : Buffer.from(this.#bytes.subarray(offset));
  }

  /** Writes bytes at an address of this memory. Returns false when the address is not in it. */
  writeAt(address: number, bytes: Uint8Array): boolean {
    const offset = address - this.address;
    if (offset < 0 || offset >= this.size) return false;
    this.#bytes.set(bytes.subarray(0, this.size - offset), offset);
    return true;
  }

  clear(length: number): void {
    this.#bytes.fill(0, 0, length);
  }
}
