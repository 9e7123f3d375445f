import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isState, stateWord } from '../../src/board/reading-states.ts';
import { chartsOf } from '../../src/server/pages/charts.ts';

const reference = readFileSync('docs/metrics.md', 'utf8');
const described = [
  ...[...reference.matchAll(/^\| `(device_\w+)` \| gauge \|.*?\|.*?\| ([^|]*)\|/gm)].map(([, name = '', help = '']) => ({ name, help })),
  ...[...reference.matchAll(/^### `(device_\w+)`\n\n(.*)\(gauge/gm)].map(([, name = '', help = '']) => ({ name, help })),
];
/** Told on the page by the verdict itself, or only while it holds, so that nothing changes. */
const NO_READINGS = /^device_(?:agent|health|present|info$|.*_info$)|^device_fpga_error$|^device_infiniband_saturated$/;

describe('states among the readings', () => {
  it('are the ones that the reference describes by what 1 says', () => {
    const states = described.filter(
      ({ name, help }) => /^(?:.*: )?1 (?:while|when|for) |always 1\.?\s*$/m.test(help) && !NO_READINGS.test(name),
    );
    expect(states.length).toBeGreaterThan(20);
    expect(states.filter(({ name }) => !isState(name))).toEqual([]);
  });

  it('are no amounts', () => {
    const amounts = described.filter(({ name }) => /_(?:ratio|bytes|celsius|watts|hertz|seconds|volts|amperes)$/.test(name));
    expect(amounts.length).toBeGreaterThan(20);
    expect(amounts.filter(({ name }) => isState(name))).toEqual([]);
  });

  it('have words, and no word for a value that only says that another state holds', () => {
    expect(stateWord('device_link_up', {}, 0)).toBe('down');
    expect(stateWord('device_nvidia_recovery_action', { action: 'reset_gpu' }, 1)).toBe('reset gpu');
    expect(stateWord('device_nvidia_recovery_action', { action: 'reset_gpu' }, 0)).toBeUndefined();
    expect(stateWord('device_nvidia_performance_state', {}, 8)).toBe('P8');
  });

  it('are one line for each thing that is in one of them, and unknown where nothing was read', () => {
    const state = (name: string, values: readonly (number | null)[]) => ({
      ...{ metric: 'device_infiniband_port_physical_state', type: 'gauge' as const, labels: { port: '1', state: name }, values },
    });
    const samples = {
      times: [0, 1_000, 2_000, 3_000],
      series: [state('LinkUp', [1, null, null, 1]), state('Polling', [null, 1, null, null])],
    };
    const [chart] = chartsOf(samples, { fromMs: 0, untilMs: 3_000 });
    expect(chart?.words).toEqual(['LinkUp', 'Polling']);
    expect(chart?.lines).toEqual([{ name: 'port 1', values: [0, 1, null, 0] }]);
  });
});
