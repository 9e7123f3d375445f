import type { MetricSpec, MetricTraits, MetricType } from '../../model/metric.ts';

type Declare = (name: string, help: string, labels: readonly string[], source: string, traits?: MetricTraits) => MetricSpec;

/** Returns functions that declare the metrics of one family: `name` is what follows `device_<family>_`. */
export function familyMetrics(family: string): { readonly gauge: Declare; readonly counter: Declare } {
  const declare =
    (type: MetricType): Declare =>
    (name, help, labels, source, traits = {}) => ({ name: `device_${family}_${name}`, type, help, labels, source, ...traits });
  return { gauge: declare('gauge'), counter: declare('counter') };
}
