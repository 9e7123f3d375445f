interface Recording {
  readonly record: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly expr: string;
}

/** Devices that the containers of a namespace hold, as a mean of five minutes; a shared device counts for each with its part. */
export const SHARE_BY_NAMESPACE = 'namespace:device_share_seconds:rate5m';
/** The same for the time in which the devices did nothing. */
export const IDLE_BY_NAMESPACE = 'namespace:device_idle_share_seconds:rate5m';

/** Price of one device for one hour. The label `priced` is a model or a family. */
const PRICE = 'priced:device_hour_price:max';
const GROUP = 'cluster, holder_namespace, family, model';

/** The price of the model counts before that of the family. Devices without a price have no cost. */
function cost(amount: string): string {
  const priced = (label: string): string =>
    `sum by (${GROUP}) (label_replace(${amount}, "priced", "$1", "${label}", "(.+)") * on (priced) group_left () ${PRICE})`;
  return `${priced('model')}\nor\n${priced('family')}`;
}

/** Cost in money per hour, at this moment. `sum_over_time` at one value a minute, divided by 60, is the cost of a span of time. */
export const costs: readonly Recording[] = [
  { record: 'namespace:device_cost_per_hour:rate5m', expr: cost(SHARE_BY_NAMESPACE) },
  { record: 'namespace:device_idle_cost_per_hour:rate5m', expr: cost(IDLE_BY_NAMESPACE) },
];

/** The rule that tells one price. */
export const priceRule = (priced: string, price: number): Recording => ({ record: PRICE, labels: { priced }, expr: `vector(${price})` });
