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
