import { visible } from '../model/one-line.ts';

/** Limits of Linux: `PATH_MAX` and `NAME_MAX`. */
const MOST_PATH_BYTES = 4_096;
const MOST_PART_BYTES = 255;

/**
 * True for the name of a file in an archive: relative, below the directory where it is unpacked, and shown as it is. No empty part, `.` or
 * `..`, no backslash, which other systems take for a slash, and no character that a line or a terminal does not show.
 */
export function isEntryName(path: string): boolean {
  return (
    Buffer.byteLength(path) <= MOST_PATH_BYTES &&
    !path.includes('\\') &&
    visible(path) === path &&
    path.split('/').every((part) => !['', '.', '..'].includes(part) && Buffer.byteLength(part) <= MOST_PART_BYTES)
  );
}

/** Begins of the paths of a captured tree. Everything else below the directory of a replay belongs to the replay. */
const PLACES =
  /^(?:(?:sys|proc|dev|share|claims|cdi\d{1,3})(?:\/|$)|directory(?:\/probe\.[a-z0-9-]+\.[a-z-]*-directory(?:\/|$)|$)|log(?:\/kmsg)?$|kubelet(?:\/checkpoint)?$)/;

/** As {@link isEntryName}, for a path of a captured tree. */
export const isTreePath = (path: string): boolean => isEntryName(path) && PLACES.test(path);
