import { integerOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const webOptions = {
  'listen-address': stringOption(
    ':9835',
    'Where to serve metrics, API and page: `:port`, `host:port`, `[ipv6]:port`, or the path of a unix socket.',
  ),
  'telemetry-path': stringOption('/metrics', 'Path of the metrics page.'),
  'max-requests': integerOption(
    40,
    'Largest number of answers under way at once; further requests wait a little, then get 503. 0: no limit.',
  ),
} as const satisfies OptionSpecs;
export type WebOptions = OptionValues<typeof webOptions>;
