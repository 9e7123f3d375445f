/** One entry of an `Accept` or `Accept-Encoding` header. */
interface Preference {
  readonly value: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

/** Prometheus text format 0.0.4, or OpenMetrics 1.0. */
export type ScrapeFormat = 'text' | 'openmetrics';

/**
 * Returns the text format, unless the client names OpenMetrics with at least the same quality. A client that accepts neither gets the
 * text format, as with every exporter.
 */
export function chooseFormat(accept: string | undefined): ScrapeFormat {
  const preferences = parsePreferences(accept ?? '');
  const openMetrics = best(preferences, (one) => one.value === 'application/openmetrics-text' && isVersion(one, '1.0.0'));
  const text =
    best(preferences, (one) => one.value === 'text/plain' && isVersion(one, '0.0.4')) ??
    best(preferences, (one) => one.value === 'text/*') ??
    best(preferences, (one) => one.value === '*/*');
  return openMetrics !== undefined && openMetrics > 0 && openMetrics >= (text ?? 0) ? 'openmetrics' : 'text';
}

export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  const preferences = parsePreferences(acceptEncoding ?? '');
  const gzip = best(preferences, (one) => one.value === 'gzip' || one.value === 'x-gzip') ?? best(preferences, (one) => one.value === '*');
  return gzip !== undefined && gzip > 0;
}

function best(preferences: readonly Preference[], matches: (one: Preference) => boolean): number | undefined {
  const qualities = preferences.filter(matches).map((one) => one.quality);
  return qualities.length === 0 ? undefined : Math.max(...qualities);
}

const isVersion = (one: Preference, version: string): boolean => (one.parameters.version ?? version) === version;

/** An entry with an invalid quality gets the quality 0, which means "not accepted". */
function parsePreferences(header: string): readonly Preference[] {
  return header
    .split(',')
    .map((entry) => entry.split(';').map((part) => part.trim()))
    .filter(([value]) => value !== undefined && value !== '')
    .map(([value = '', ...rest]) => {
      const parameters = Object.fromEntries(rest.map(parseParameter));
      return { value: value.toLowerCase(), parameters, quality: parseQuality(parameters.q) };
    });
}

function parseParameter(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 0) return [text.toLowerCase(), ''];
  const value = text.slice(at + 1).trim();
  return [text.slice(0, at).trim().toLowerCase(), value.replace(/^"(.*)"$/, '$1')];
}

function parseQuality(text: string | undefined): number {
  if (text === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text) : 0;
}
