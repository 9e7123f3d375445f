import { constant, integerOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

/** Options `--podsapi.<name>`. */
export const podsApiOptions = {
  socket: stringOption(
    '/var/lib/kubelet/pods-api/pods-api.sock',
    "Socket of the kubelet's Pods API: on by default from Kubernetes 1.37, by the gate PodsAPI in 1.36.",
  ),
  /** The answer contains complete pods. */
  'max-message-bytes': constant(integerOption(32 * 1_024 * 1_024, 'Largest answer of the Pods API that is accepted, in bytes.')),
} as const satisfies OptionSpecs;
export type PodsApiOptions = OptionValues<typeof podsApiOptions>;
