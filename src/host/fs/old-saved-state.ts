import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';

/** Largest text of one line of version 3. A damaged file cannot fill the memory. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Before version 3, the second line is the complete state as JSON, and the header has its checksum. Undefined when it is damaged. */
export function stateBeforeVersion3(line = '', sha256?: string): unknown {
  return sha256 === createHash('sha256').update(line).digest('hex') ? JSON.parse(line) : undefined;
}

/** In version 3, each line is compressed by zlib (RFC 1950, with a checksum), in base64. Undefined when it is damaged. */
export function changeOfVersion3(line: string): unknown {
  try {
    const bytes = Buffer.from(line, 'base64');
    if (bytes.toString('base64') !== line) return undefined;
    return JSON.parse(inflateSync(bytes, { maxOutputLength: MAX_LINE_BYTES }).toString('utf8'));
  } catch {
    return undefined;
  }
}
