import type { Collection } from '../../model/collection.ts';

/** Collection of a family whose directory below `/sys` cannot be listed. Without the directory the machine has no such hardware. */
export function unlisted(directory: string, error: string, code = 'class-unreadable'): Collection {
  if (error === 'ENOENT') return { reports: [], problems: [], listing: 'absent' };
  return { reports: [], problems: [{ code, message: `listing /sys/${directory} fails with ${error}` }], listing: 'partial' };
}
