import { seconds } from '../../model/duration.ts';
import { durationOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

export const options = {
  'smi-path': stringOption('nvidia-smi', 'The command nvidia-smi, by path or as found in PATH.'),
  timeout: durationOption(seconds(10), 'How long the command may take before it is killed.', 100),
  kmsg: stringOption('', 'The kernel log in which Xids appear, or a file in its format. Empty: kmsg below --path.dev.'),
} as const satisfies OptionSpecs;
export type NvidiaOptions = OptionValues<typeof options>;
