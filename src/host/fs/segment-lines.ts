import { constants } from 'node:fs';
import { openRegular } from './log-segments.ts';

const PART_BYTES = 65_536;
/** A longer line counts as damaged, so that a damaged file cannot fill the memory. */
const MAX_LINE_BYTES = 1_048_576;
const NEWLINE = 0x0a;

/**
 * Gives each line of a file, without its newline, to `take`; undefined for a line that is too long. Reads in small parts and waits for each,
 * so that other work of the process goes on meanwhile. Rejects with the error of the system.
 */
export async function eachLine(path: string, take: (line: string | undefined) => void): Promise<void> {
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    let rest: Buffer = Buffer.alloc(0);
    let isTooLong = false;
    const end = (line: Buffer): void => {
      take(isTooLong ? undefined : line.toString('utf8'));
      isTooLong = false;
    };
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PART_BYTES), 0, PART_BYTES, null);
      if (bytesRead === 0) break;
      let part: Buffer = rest.length === 0 ? buffer.subarray(0, bytesRead) : Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      for (let at = part.indexOf(NEWLINE); at >= 0; at = part.indexOf(NEWLINE)) {
        end(part.subarray(0, at));
        part = part.subarray(at + 1);
      }
      isTooLong ||= part.length > MAX_LINE_BYTES;
      rest = isTooLong ? Buffer.alloc(0) : part;
    }
    if (rest.length > 0 || isTooLong) end(rest);
  } finally {
    await file.close();
  }
}
