/** Base units of Prometheus that metric names end in. */
const UNITS = ['celsius', 'bytes_per_second', 'bytes', 'seconds', 'ratio', 'joules', 'watts', 'volts', 'amperes', 'hertz', 'rpm', 'lanes'];

/** Returns the unit at the end of a metric name; undefined for plain counts and for 0 or 1. */
export function unitOf(name: string): string | undefined {
  const base = name.replace(/_total$/, '');
  return UNITS.find((unit) => base.endsWith(`_${unit}`));
}
