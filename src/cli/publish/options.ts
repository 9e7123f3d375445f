import type { OptionSection } from '../../config/registry.ts';
import { seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

/** The files of a pod that its service account gives it. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Options `--publish.<name>`, only of the command `publish`. */
export const publishOptions = {
  'api-server': stringOption(
    '',
    'URL of the API server. Empty: the one that the variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of a pod name.',
  ),
  'token-file': stringOption(`${ACCOUNT}/token`, 'File with the token; it is read for each request. Empty: no token.'),
  'ca-file': stringOption(`${ACCOUNT}/ca.crt`, 'File with the certificates of the authority of the API server.'),
  events: booleanOption(true, 'Write events on the node, and on the pods that held a device when it failed.'),
  'device-taint-rules': stringOption(
    'off',
    'Keep a DeviceTaintRule with this effect for each unhealthy device of a DRA driver. `NoExecute` evicts the pods that hold it.',
    ['off', 'None', 'NoSchedule', 'NoExecute'],
  ),
  'node-taint': stringOption(
    'off',
    'Keep a taint with this effect on the node while a device is unhealthy. It closes the whole node; `NoExecute` evicts its pods.',
    ['off', 'PreferNoSchedule', 'NoSchedule', 'NoExecute'],
  ),
  resync: durationOption(
    seconds(60),
    'How often the node is read again, to find that it was created again or that others changed it.',
    5_000,
  ),
} as const satisfies OptionSpecs;
export type PublishOptions = OptionValues<typeof publishOptions>;

/** Options of the command `publish`. They are not in the file, which belongs to the agent. */
export const publishSection: OptionSection = { path: 'publish', title: 'Publisher', options: publishOptions, inFile: false };
