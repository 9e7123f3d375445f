import { seconds } from '../model/duration.ts';
import { constant, durationOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const REGISTRATIONS = ['direct', 'watcher'] as const;
export type RegistrationChoice = (typeof REGISTRATIONS)[number];

/** Options `--plugin.<name>`. Only the configuration file defines which resources are served. */
export const pluginOptions = {
  dir: stringOption('/var/lib/kubelet/device-plugins', "The kubelet's directory of device plugin sockets, kubelet.sock among them."),
  'registry-dir': stringOption('/var/lib/kubelet/plugins_registry', "The directory that the kubelet's plugin watcher watches."),
  registration: stringOption(
    'direct',
    'How the kubelet learns of a resource: by a call to kubelet.sock, or by its plugin watcher finding a socket.',
    REGISTRATIONS,
  ),
  'stream-timeout': constant(
    durationOption(seconds(10), 'How long to wait for the kubelet to ask for the device list before registering again.'),
  ),
} as const satisfies OptionSpecs;
export type PluginOptions = OptionValues<typeof pluginOptions>;
