import { describe, expect, it } from 'vitest';
import type { DeviceHistory } from '../../../src/incidents/history.ts';
import type { ContainerWaiting } from '../../../src/model/usage.ts';
import { waitingPart } from '../../../src/server/pages/pod-page.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const one = (state: ContainerWaiting['state'], more: Partial<ContainerWaiting> = {}): ContainerWaiting => ({
  namespace: 'team',
  pod: 'job-0',
  container: 'main',
  devices: ['toy/a'],
  state,
  ...more,
});
const counter = (port: string, values: readonly (number | null)[]): DeviceHistory['series'][number] => ({
  metric: 'device_received_bytes_total',
  labels: { port },
  type: 'counter',
  values,
});
const times = [0, 10, 20, 30].map((at) => NOW - 40_000 + at * 1_000);
const text = (waiting: readonly ContainerWaiting[], history?: DeviceHistory): string =>
  waitingPart(waiting, () => history, NOW)?.text ?? '';

describe('the part of the page about progress', () => {
  it('says how long ago the last progress was, and draws each read', () => {
    const stalled = one('stalled', { lastProgressMs: NOW - 720_000, stepSeconds: 30 });
    const history: DeviceHistory = { times, series: [counter('1', [0, 100, 100, 200]), counter('2', [0, 0, 0, 100])] };
    const shown = text([stalled], history);
    expect(shown).toContain('<b>main</b> stalled: busy, but its steps have ended, last progress 12 min ago, steps of about 30 s');
    expect(shown).toContain('Bytes of the first GPU of main');
    expect(shown.match(/[ML][\d.]+ [\d.]+/g)).toHaveLength(3);
  });

  it('draws the power where no bytes are read', () => {
    const power = { metric: 'device_power_watts', labels: { sensor: 'gpu' }, type: 'gauge' as const, values: [100, 600, 100, 600] };
    expect(text([one('waiting')], { times, series: [power] })).toContain('Power of the first GPU of main');
  });

  it('says why it does not know, and nothing of a pod without GPUs', () => {
    const unknown = one('unknown', { unknown: 'not read: the bytes of toy/a' });
    expect(text([unknown])).toContain('is not known to move or to wait: not read: the bytes of toy/a');
    expect(text([])).toBe('');
  });
});
