import { millis, minutes, seconds } from '../model/duration.ts';
import {
  constant,
  durationOption,
  integerOption,
  listOption,
  type OptionSpecs,
  type OptionValues,
  stringOption,
} from '../model/options.ts';

/** Options `--podresources.<name>`. */
export const podResourcesOptions = {
  socket: stringOption(
    '/var/lib/kubelet/pod-resources/kubelet.sock',
    "Socket of the kubelet's PodResources API, which tells the container that holds a device.",
  ),
  timeout: durationOption(seconds(10), 'Timeout of one request to the kubelet.', 100),
  'restart-grace': durationOption(
    seconds(30),
    'How long, after a restart of the kubelet, allocations that it does not report yet are kept and marked as held.',
  ),
  hold: durationOption(minutes(15), 'How long the last allocations are kept while the kubelet does not answer.', 1_000),
  'without-hardware': listOption(
    [
      ...['dra.cpu', 'dra.memory'],
      ...['kvm', 'tun', 'vhost-net', 'vhost-vsock', 'fuse'].map((node) => `*/${node}`),
      'vpc.amazonaws.com/pod-eni',
    ],
    'Resources, and drivers of claims, that stand for no hardware, so that an allocation without a device is no finding, beside those that the families know; * stands for any characters.',
  ),
  'min-interval': constant(durationOption(millis(250), 'Shortest time between two requests that follow a change.')),
  'max-message-bytes': constant(integerOption(16 * 1_024 * 1_024, 'Largest answer of the kubelet that is accepted, in bytes.')),
  checkpoint: stringOption(
    '/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint',
    "The kubelet's device checkpoint: when it changes, the agent asks the kubelet immediately. Empty: not watched.",
  ),
} as const satisfies OptionSpecs;
export type PodResourcesOptions = OptionValues<typeof podResourcesOptions>;

/** Options `--dra.<name>`. */
export const draOptions = {
  'metadata-dir': stringOption(
    '/var/lib/kubelet/plugins',
    "The kubelet's directory of plugins, where DRA drivers write metadata about the devices of claims. Empty: not read.",
  ),
} as const satisfies OptionSpecs;
export type DraOptions = OptionValues<typeof draOptions>;

/** Options `--cdi.<name>`. */
export const cdiOptions = {
  dirs: listOption(
    ['/var/run/cdi', '/etc/cdi'],
    'Directories of CDI specs, which say what device nodes a claim gives. An earlier directory wins. Empty: not read.',
  ),
} as const satisfies OptionSpecs;
export type CdiOptions = OptionValues<typeof cdiOptions>;

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
