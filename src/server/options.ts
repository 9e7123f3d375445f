import { integerOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const webOptions = {
  'listen-address': stringOption(
    ':9835',
    'Where to serve metrics, API and page: `:port`, `host:port`, `[ipv6]:port`, or the path of a unix socket.',
  ),
  'telemetry-path': stringOption('/metrics', 'Path of the metrics page.'),
  'max-requests': integerOption(
    40,
    'Largest number of answers under way at once, of which no client, told by its address, gets more than it leaves free for others: one alone half of them. Further requests wait; after 5 seconds they get the place of an answer that takes as long, or 503. A client that has none gets one of a client that has several after half a second. 0: no limit.',
  ),
} as const satisfies OptionSpecs;
/** Whether the metrics page there would be in the way of the API, a device's page or the signs of life. */
export const isTakenPath = (path: string): boolean => /^\/(?:(?:api|devices|-)\/|healthz$|readyz$)/.test(path);

export type WebOptions = OptionValues<typeof webOptions>;
