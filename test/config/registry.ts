import { configOptions } from '../../src/config/options.ts';
import { createRegistry, type OptionSection, type Registry } from '../../src/config/registry.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { seconds } from '../../src/model/duration.ts';
import { booleanOption, durationOption, integerOption, listOption, stringOption } from '../../src/model/options.ts';

/** One section for each kind of option. */
export const sections: readonly OptionSection[] = [
  { path: 'config', title: 'Configuration', options: configOptions, inFile: false },
  { path: 'log', title: 'Log', options: { level: stringOption('info', 'Least level.', ['debug', 'info', 'warn', 'error']) } },
  { path: 'refresh', title: 'Refresh', options: { interval: durationOption(seconds(10), 'How often.', 100) } },
  {
    path: 'web',
    title: 'Web',
    options: { 'max-connections': integerOption(64, 'How many.', 1), 'listen-address': stringOption(':9835', 'Where.') },
  },
  {
    path: 'probe.nvidia',
    title: 'Probe nvidia',
    options: {
      'smi-path': stringOption('nvidia-smi', 'The command.'),
      strict: booleanOption(false, 'Whether.'),
      skip: listOption([], 'Devices left out.'),
    },
    toggle: booleanOption(true, 'Read it.'),
  },
];

export function testRegistry(): Registry {
  return createRegistry(sections, structuredParts);
}
