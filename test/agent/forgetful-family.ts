import type { Host } from '../../src/host/host.ts';
import type { Finding } from '../../src/model/health.ts';
import type { Probe } from '../../src/probes/family.ts';

/** One card. Like GPU errors, a logged error is known only to the thread that read the log. */
function createProbe({ sys }: Pick<Host, 'sys'>): Probe {
  const known = new Map<string, Finding>();
  return {
    collect() {
      if (sys.exists('throw')) throw new Error('as told');
      for (const instance of (sys.text('log') ?? '').split(' ').filter((word) => word !== ''))
        known.set(instance, { type: 'Error', instance, status: true, reason: 'Logged', message: `error ${instance}` });
      if (sys.exists('reset')) known.clear();
      const over: Finding[] = sys.exists('reset') ? [{ type: 'Error', status: false, reason: 'Reset', message: 'reset' }] : [];
      const device = { family: 'fpga', id: 'card', kind: 'card', aliases: [] };
      const read = { readings: [], findings: [] };
      const outOfBand = { readings: [], findings: [...known.values(), ...over] };
      return { reports: [{ device, read, outOfBand }], problems: [], listing: 'complete' };
    },
  };
}

export const family = {
  name: 'fpga',
  summary: 'Cards.',
  metrics: [],
  problems: [],
  options: {},
  conditions: [
    {
      type: 'Error',
      class: 'latched',
      severity: 'fatal',
      reasons: ['Logged', 'Reset'],
      meaning: 'An error was logged.',
      remedy: 'reset',
      source: 'log',
      outOfBand: true,
    },
  ],
  createProbe,
} as const;
