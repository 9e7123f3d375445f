import { describe, expect, it } from 'vitest';
import { Page } from '../../src/metrics/page/page.ts';
import { Work } from '../../src/metrics/page/steps.ts';
import { addProbes } from '../../src/metrics/series/probe-metrics.ts';
import type { FamilyState, Snapshot } from '../../src/model/snapshot.ts';

const never: FamilyState = {
  family: 'toy',
  succeeded: true,
  lastSuccessMs: 1_000,
  problems: [],
  runs: 0,
  failures: 0,
  abandoned: 0,
  hung: false,
};
const missing = { device: { family: 'toy' }, verdict: { state: 'unknown' }, missingSinceMs: 1 };

/** Names of the series of a family. */
function seriesOf(family: FamilyState, devices: readonly object[] = []): readonly string[] {
  const page = new Page();
  addProbes(page, { families: [family], devices } as unknown as Snapshot);
  const lines = new Work(new Work(page.finish()).result.bytes('text')).result.toString().split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

describe('the series of a family without hardware', () => {
  it('are one while it never had any', () => {
    expect(seriesOf(never)).toEqual(['device_agent_probe_success{family="toy"} 1']);
  });

  it.each([
    ['runs', { ...never, runs: 1 }],
    ['a failure', { ...never, succeeded: false, runs: 1, failures: 1 }],
    ['a problem', { ...never, problems: [{ code: 'driver-missing', message: '' }] }],
    ['a hang', { ...never, hung: true }],
  ])('are all after %s, so that no alert loses its counter', (_, family) => {
    const names = seriesOf(family).join('\n');
    for (const name of ['success', 'runs_total', 'failures_total', 'abandoned_runs_total', 'hung'])
      expect(names).toContain(`device_agent_probe_${name}{family="toy"}`);
    expect(names).toContain('device_agent_devices{family="toy",state="missing"} 0');
  });

  it('are all while a device of an earlier run of the agent is missing', () => {
    expect(seriesOf(never, [missing])).toContain('device_agent_devices{family="toy",state="missing"} 1');
  });
});
