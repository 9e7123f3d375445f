import { booleanOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const labelOptions = {
  attribution: stringOption(
    '',
    'Prefix of the labels that name a holder: with `workload_` they are `workload_namespace`, `workload_pod` and `workload_container`. For a scrape whose own labels `namespace`, `pod` and `container` cannot be turned off.',
  ),
  uuid: booleanOption(
    false,
    'Whether the readings of a device that has a UUID carry it as the label `uuid`, as the test of the AI conformance programme finds accelerators. Otherwise only device_info has it.',
  ),
} as const satisfies OptionSpecs;

export type LabelOptions = OptionValues<typeof labelOptions>;

export const containerMetricOptions = {
  zeros: booleanOption(
    true,
    'Whether the page has container_device_… counters that stay 0. Without them it has fewer series, and Prometheus does not see the first growth of such a counter.',
  ),
} as const satisfies OptionSpecs;

export type ContainerMetricOptions = OptionValues<typeof containerMetricOptions>;

/** Labels that other series of the agent have, so that a prefix must not produce them. */
const TAKEN: ReadonlySet<string> = new Set(['claim_', 'exported_']);

/** Why a prefix cannot be used; undefined when it can. Source of the pattern: the data model of Prometheus. */
export function attributionProblem(prefix: string): string | undefined {
  if (prefix === '') return undefined;
  if (!/^[a-zA-Z][a-zA-Z0-9_]*$/.test(prefix)) return 'must be empty, or start with a letter and have only letters, digits and underscores';
  return TAKEN.has(prefix) ? 'must not be claim_ or exported_, which other labels use' : undefined;
}
