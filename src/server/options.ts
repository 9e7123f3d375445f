import { integerOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const webOptions = {
  'listen-address': stringOption(
    ':9835',
    'Where to serve metrics, API and page: `:port`, `host:port`, `[ipv6]:port`, or the path of a unix socket.',
  ),
  'telemetry-path': stringOption('/metrics', 'Path of the metrics page.'),
  'max-requests': integerOption(40, 'Largest number of answers under way at once; further requests get 503. 0: no limit.'),
} as const satisfies OptionSpecs;
/** Whether the metrics page there would be in the way of the API, a device's page or the signs of life. */
export const isTakenPath = (path: string): boolean => /^\/(?:(?:api|devices|-)\/|healthz$|readyz$)/.test(path);

export type WebOptions = OptionValues<typeof webOptions>;
