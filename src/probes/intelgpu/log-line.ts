import type { KmsgRecord } from '../../host/kernel-log/record.ts';

/** What a record of the kernel log says about one card. */
export interface LogLine {
  /** PCI address as the driver writes it: `0000:03:00.0`. */
  readonly address: string;
  /**
   * `wedged`: the driver gave the card up. `recovered`: the driver reset the card and works on. `loaded`: the driver started on the card.
   * The others are hardware errors by severity.
   */
  readonly event: 'wedged' | 'recovered' | 'loaded' | HardwareSeverity;
}

export type HardwareSeverity = 'fatal' | 'nonfatal' | 'correctable';
export const HARDWARE_SEVERITIES: readonly HardwareSeverity[] = ['fatal', 'nonfatal', 'correctable'];

const ADDRESS = '([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7])';
const LOADED = new RegExp(`^\\[drm\\] Initialized (?:i915|xe) .{0,60}for ${ADDRESS} on minor \\d+$`);
const OF_CARD = new RegExp(`^(?:i915|xe) ${ADDRESS}: (.*)$`);
const WEDGED = /declared device \S+ as wedged|device wedged, needs recovery|declaring (?:it|device) wedged/;
const HARDWARE = /\[Hardware Error\]: tile\d+ reported .{0,60}?\b(fatal|non-?fatal|correctable)\b/i;

/**
 * Parses one record. Undefined for one that means nothing here. The drivers print about a card with `dev_printk` (drm_err, drm_info), so
 * the record has the card as its device; one without is from another part of the kernel, and may begin with a name that a process chose.
 * Only the core of DRM prints the start of a driver without the device (DRM_INFO in drm_dev_register).
 */
export function parseLogLine({
  origin,
  text,
  subsystem,
  device,
}: Pick<KmsgRecord, 'origin' | 'text' | 'subsystem' | 'device'>): LogLine | undefined {
  if (origin !== 'kernel') return undefined;
  const loaded = LOADED.exec(text)?.[1];
  if (loaded !== undefined) return { address: loaded, event: 'loaded' };
  const [, address, message = ''] = OF_CARD.exec(text) ?? [];
  if (address === undefined || subsystem !== 'pci' || device !== `+pci:${address}`) return undefined;
  if (WEDGED.test(message)) return { address, event: 'wedged' };
  // "but recovered through reset", later "but no recovery needed".
  if (message.includes('device wedged, but ')) return { address, event: 'recovered' };
  const severity = HARDWARE.exec(message)?.[1]?.toLowerCase().replace('-', '');
  return severity === undefined ? undefined : { address, event: severity as HardwareSeverity };
}
