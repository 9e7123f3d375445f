import type { Tree } from '../../host/fs/tree.ts';
import { defined } from '../../model/defined.ts';

/**
 * Names of files that must not be read, wherever they lie: a read changes something, blocks, wakes the device, or gives binary data of the
 * hardware. Sources: Linux Documentation/ABI/testing/sysfs-bus-pci, sysfs-driver-habanalabs.
 */
const REFUSED_NAMES: ReadonlySet<string> = new Set([
  'config',
  'rom',
  'vpd',
  'eeprom',
  'remove',
  'rescan',
  'reset',
  'uevent_helper',
  'hard_reset',
  'soft_reset',
  'reset_error_counters',
]);

/** Places below `/sys` in which a read can trigger work of the kernel. */
const REFUSED_PLACES = ['kernel/debug', 'kernel/tracing', 'kernel/security', 'firmware', 'fs'];

/** Whether a declared family may read a path. The path is relative to the root of a tree. */
export function isAllowed(path: string): boolean {
  const segments = path.split('/');
  if (segments.some((segment) => segment === '..' || segment === '.' || segment.includes('\u0000'))) return false;
  const name = segments.at(-1) ?? '';
  if (REFUSED_NAMES.has(name) || /^resource\d+/.test(name)) return false;
  return !REFUSED_PLACES.some((place) => path === place || path.startsWith(`${place}/`));
}

/** Limit of paths that one glob finds. */
const MOST_MATCHES = 1_024;
/** Limit of directory entries that one glob looks at. */
const MOST_LOOKS = 65_536;

/** A path that matches a glob, and the texts that stand for its stars. */
export interface Match {
  readonly path: string;
  readonly captures: readonly string[];
}

/** Result of one search. `error`: errno of the first directory that exists and cannot be listed. `isCut`: there are more matches. */
interface GlobResult {
  readonly matches: readonly Match[];
  readonly error?: string;
  readonly isCut: boolean;
}

/**
 * Finds the paths that match a glob: `*` stands for any characters of one name, `#` for a decimal number. A match whose real path leaves the tree, or lies in a place
 * that must not be read, is left out.
 */
export function findMatches(tree: Tree, glob: string, mostMatches = MOST_MATCHES): GlobResult {
  const matches: Match[] = [];
  let [looks, isCut] = [0, false];
  let error: string | undefined;
  const visit = (segments: readonly string[], at: string, captures: readonly string[]): void => {
    const [segment, ...rest] = segments;
    if (segment === undefined) {
      if (matches.length >= mostMatches) isCut = true;
      else if (isInside(tree, at)) matches.push({ path: at, captures });
      return;
    }
    const below = (name: string): string => (at === '' ? name : `${at}/${name}`);
    if (!isWild(segment)) {
      if (rest.length > 0 || tree.exists(below(segment))) visit(rest, below(segment), captures);
      return;
    }
    const listing = tree.listing(at === '' ? '.' : at);
    if (listing.names === undefined) {
      // Below a wildcard, a file beside directories is normal. A file in place of the directory that a declaration names hides the devices.
      const isNothing = listing.error === 'ENOENT' || (listing.error === 'ENOTDIR' && captures.length > 0);
      if (!isNothing) error ??= listing.error;
      return;
    }
    const pattern = expressionOf(segment);
    for (const name of inNumericOrder(listing.names)) {
      looks += 1;
      if (looks > MOST_LOOKS || isCut) {
        isCut = true;
        return;
      }
      const found = pattern.exec(name)?.slice(1);
      if (found !== undefined) visit(rest, below(name), [...captures, ...found]);
    }
  };
  visit(glob.split('/'), '', []);
  return { matches, isCut, ...defined({ error }) };
}

/** The texts that stand for the wildcards of a pattern in a name; undefined when the name does not match. */
export function capturesOf(pattern: string, name: string): readonly string[] | undefined {
  return expressionOf(pattern).exec(name)?.slice(1);
}

/** A segment has few wildcards, which the check of a declaration ensures. So the time of a match is bounded. */
function expressionOf(pattern: string): RegExp {
  const source = pattern.replace(/[\\^$.*+?()[\]{}|#]/g, (sign) => (sign === '*' ? '(.*?)' : sign === '#' ? '(\\d+)' : `\\${sign}`));
  return new RegExp(`^${source}$`);
}

export const isWild = (segment: string): boolean => /[*#]/.test(segment);

/** The part of a glob before its first star: the directory that shows whether the hardware may exist. */
export function fixedPart(glob: string): string {
  const segments = glob.split('/');
  const star = segments.findIndex((segment) => isWild(segment));
  return (star < 0 ? segments : segments.slice(0, star)).join('/');
}

function isInside(tree: Tree, path: string): boolean {
  const real = tree.realpath(path);
  return real !== undefined && real !== '..' && !real.startsWith('../') && isAllowed(path) && isAllowed(real);
}

/** `acme10` follows `acme9`. */
const inNumericOrder = (names: readonly string[]): readonly string[] => [...names].sort(order.compare);
const order = new Intl.Collator('en', { numeric: true });
