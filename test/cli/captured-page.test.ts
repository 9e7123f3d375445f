import { describe, expect, it } from 'vitest';
import { renderMetrics } from '../../scripts/reference/families.ts';
import { capturedPage, NOT_REPEATED } from '../../src/cli/replay/captured-page.ts';
import { run } from './command-line.ts';

const declared = [...(await renderMetrics([])).matchAll(/`([a-z][a-z0-9_]+)`/g)].map((match) => match[1] as string);

describe('the series that a replay cannot repeat', () => {
  it.each(NOT_REPEATED.flatMap(({ series }) => series))('%s are metrics of the agent, and no others', (series) => {
    const page = declared.map((name) => `# TYPE ${name} gauge\n${name} 1\n`).join('\n');
    expect(declared.some((name) => (series.endsWith('*') ? name.startsWith(series.slice(0, -1)) : name === series))).toBe(true);
    const left = new Set(capturedPage(page).match(/^[a-z0-9_]+/gm));
    const gone = declared.filter((name) => !left.has(name));
    expect(gone.filter((name) => !/^(?:device_agent|process|nodejs)_/.test(name))).toEqual([]);
  });

  it('are left out with their comments and the parts of a histogram, and all others stay', () => {
    const page = `# HELP device_health x
# TYPE device_health gauge
device_health{device="a"} 1

# HELP device_agent_probe_run_duration_seconds x
# TYPE device_agent_probe_run_duration_seconds histogram
device_agent_probe_run_duration_seconds_bucket{le="1.0"} 1
device_agent_probe_run_duration_seconds_sum 1

# HELP device_agent_probe_runs_total x
# TYPE device_agent_probe_runs_total counter
device_agent_probe_runs_total{family="a"} 1
`;
    expect(capturedPage(page)).toBe(
      page
        .split('\n\n')
        .filter((block) => !block.includes('duration'))
        .join('\n\n'),
    );
  });

  it('are in the help of the command, each with its reason', async () => {
    const { stdout } = await run(['replay', '--help']);
    for (const { series, why } of NOT_REPEATED) for (const text of [...series, why]) expect(stdout).toContain(text);
  });
});
