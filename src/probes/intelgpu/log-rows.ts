import { raise } from '../kit/finding.ts';
import type { LogRow } from '../kit/log-rows.ts';
import { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';

const { Wedged, HardwareFatal, HardwareNonfatal } = conditions;
const drivers = ['i915', 'xe'];

const hardware = (
  severity: string,
  form = severity,
): Pick<LogRow, 'name' | 'drivers' | 'text'> & { readonly counts: NonNullable<LogRow['counts']> } => ({
  name: severity,
  drivers,
  text: new RegExp(`\\[Hardware Error\\]: tile\\d+ reported .{0,60}?\\b${form}\\b`, 'i'),
  counts: { metric: metrics.hardwareErrors, labels: { severity } },
});

/**
 * Lines of the drivers. They print about a card with `dev_printk` (drm_err, drm_info). Only the core of DRM prints the start of a driver
 * without the device (DRM_INFO in drm_dev_register).
 */
export const logRows: readonly LogRow[] = [
  {
    name: 'loaded',
    drivers,
    text: /^\[drm\] Initialized (?:i915|xe) .{0,60}for ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) on minor \d+$/,
    isWithoutDevice: true,
    tells: () => [
      raise(Wedged, 'DriverLoaded', { status: false, message: 'the driver was loaded and did not give the card up since' }),
      raise(HardwareFatal, 'DriverLoaded', { status: false, message: 'the driver was loaded and logged no fatal error since' }),
    ],
  },
  {
    name: 'wedged',
    drivers,
    text: /declared device \S+ as wedged|device wedged, needs recovery|declaring (?:it|device) wedged/,
    tells: () => [raise(Wedged, 'DeclaredWedged', { status: true, message: 'the driver declared the card as wedged' })],
  },
  // "but recovered through reset", later "but no recovery needed".
  { name: 'recovered', drivers, text: /device wedged, but /, counts: { metric: metrics.recoveries } },
  {
    ...hardware('fatal'),
    tells: () => [raise(HardwareFatal, 'FatalError', { status: true, message: 'the card reported a fatal hardware error' })],
  },
  {
    ...hardware('nonfatal', 'non-?fatal'),
    counts: {
      ...hardware('nonfatal').counts,
      growth: { condition: HardwareNonfatal, what: 'hardware errors that were not corrected' },
    },
  },
  hardware('correctable'),
];
