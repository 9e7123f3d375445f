// CPU of the children that have ended, as the system counts it: in microseconds, where /proc tells it in hundredths of a second.
import { createRequire } from 'node:module';

const RUSAGE_CHILDREN = -1;
/** `struct rusage` on 64-bit Linux: two times of seconds and microseconds come first. */
const BYTES = 144;

/** A function that gives microseconds, user and system together, of all children so far. */
export function childrenClock() {
  const koffi = createRequire(import.meta.url)('koffi');
  const getrusage = koffi.load(null).func('getrusage', 'int', ['int', 'uintptr_t']);
  const bytes = Buffer.allocUnsafeSlow(BYTES).fill(0);
  const address = koffi.address(bytes);
  const at = (offset) => Number(bytes.readBigInt64LE(offset));
  return () => {
    if (getrusage(RUSAGE_CHILDREN, address) !== 0) throw new Error('getrusage failed');
    return (at(0) + at(16)) * 1e6 + at(8) + at(24);
  };
}
