import { describe, expect, it } from 'vitest';
import { boardOf } from '../../src/board/board.ts';
import type { IncidentSummary } from '../../src/board/incident.ts';
import { sayHtml } from '../../src/board/overview-html.ts';
import { sentenceOf } from '../../src/board/summary.ts';
import type { ActiveCondition } from '../../src/model/health.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { StepCache } from '../../src/model/step-cache.ts';
import { snapshot as sample, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

const FAULT_MS = TAKEN_AT_MS - 60_000;
const condition = (type: string, sinceMs: number): ActiveCondition => ({
  ...{ type, class: 'latched', severity: 'fatal', reason: 'Gone', message: 'gone', remedy: 'reboot', sinceMs },
});
const lost = condition('GpuLost', FAULT_MS);
const sick = { state: 'unhealthy', sinceMs: FAULT_MS, conditions: [lost] } as const;
const gpu = (id: string, more: Partial<DeviceState> = {}, parent?: string): DeviceState =>
  state(device({ id, kind: 'gpu', ...(parent === undefined ? {} : { parent }) }), { verdict: sick, ...more });
const record = (atMs: number, more: Partial<IncidentSummary> = {}): IncidentSummary => ({
  id: `at-${atMs - FAULT_MS}`,
  time: new Date(atMs).toISOString(),
  device: 'toy/a',
  conditions: ['GpuLost'],
  holders: ['training/llm-0-0/worker'],
  ...more,
});
const boardWith = (devices: readonly DeviceState[], incidents: readonly IncidentSummary[]) =>
  boardOf(
    { ...sample, allocations: [], families: [], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }), devices },
    { nowMs: TAKEN_AT_MS, incidents },
  );
const said = (devices: readonly DeviceState[], incidents: readonly IncidentSummary[]): string => sentenceOf(boardWith(devices, incidents));

describe('whom a fault hit', () => {
  it('is told when the pod has ended, and leads to the record', () => {
    const board = boardWith([gpu('a')], [record(FAULT_MS + 2_000)]);
    expect(sentenceOf(board)).toBe('a is lost, training/llm-0-0 was hit: drain and reboot the node');
    expect(board.devices[0]?.incident).toEqual({ id: 'at-2000', hit: ['training/llm-0-0'] });
    expect(sayHtml(board).text).toContain('<a href="/incidents/at-2000">');
    expect(sayHtml(board).text, 'the pod has no page any more').not.toContain('/pods/training');
  });

  it('is told of who still holds it and of who does not', () => {
    const holders = [allocation({ deviceId: 'a' })];
    expect(said([gpu('a', { holders })], [record(FAULT_MS, { holders: ['ml/train-0/main'] })])).toContain('ml/train-0 is hit: ');
    expect(said([gpu('a', { holders })], [record(FAULT_MS)])).toContain('ml/train-0 is hit, training/llm-0-0 was hit: ');
    const two = record(FAULT_MS, { holders: ['training/a/x', 'training/a/y', 'training/b/x'] });
    expect(said([gpu('a')], [two])).toContain('2 pods were hit: ');
  });

  it('is not told of who holds a part that is well, because the part is read by itself', () => {
    const [own, ofPart] = ['a', 'a-0'].map((deviceId) => [allocation({ deviceId, pod: `on-${deviceId}` })]);
    const whole = gpu('a', { holders: own ?? [] });
    const part = (more: Partial<DeviceState> = {}) => gpu('a-0', { holders: ofPart ?? [], ...more }, 'a');
    expect(said([whole, part()], [])).toContain('2 pods are hit: ');
    expect(said([whole, part({ verdict: { state: 'healthy', sinceMs: 0, conditions: [] } })], [])).toContain('ml/on-a is hit: ');
  });

  it('is nobody of an earlier fault, of another fault, of another device, or of a device that is well', () => {
    expect(said([gpu('a')], [record(FAULT_MS - 11_000)])).toBe('a is lost: drain and reboot the node');
    expect(said([gpu('a')], [record(FAULT_MS + 5_000, { conditions: ['Hot'] })])).toBe('a is lost: drain and reboot the node');
    expect(said([gpu('a')], [record(FAULT_MS, { device: 'toy/b' })])).toBe('a is lost: drain and reboot the node');
    expect(boardWith([state(device({ id: 'a' }))], [record(FAULT_MS)]).devices[0]?.incident).toBeUndefined();
  });

  it('is in the first record of the fault, also where another condition of it came first', () => {
    const xid = condition('Xid', FAULT_MS - 20_000);
    const both = { verdict: { ...sick, sinceMs: FAULT_MS - 20_000, conditions: [lost, xid] } };
    const records = [record(FAULT_MS + 9_000, { holders: ['ml/later/x'] }), record(FAULT_MS - 20_000, { conditions: ['Xid'] })];
    expect(said([gpu('a', both)], records)).toContain('training/llm-0-0 was hit');
    const longBefore = record(FAULT_MS - 61_000, { conditions: ['Xid'] });
    expect(said([gpu('a', both)], [longBefore])).toBe('a is lost: drain and reboot the node');
  });

  it('is told of the parts of a device, and follows the hardware to another name', () => {
    const part = record(FAULT_MS, { device: 'toy/a-0', id: 'of-part' });
    expect(said([gpu('a'), gpu('a-0', {}, 'a')], [part])).toBe('a is lost, training/llm-0-0 was hit: drain and reboot the node');
    const moved = state(device({ id: 'b', kind: 'gpu', identity: 'serial-1' }), { verdict: sick });
    expect(said([moved], [record(FAULT_MS, { hardware: 'toy#serial-1' })])).toContain('training/llm-0-0 was hit');
    const twins = ['a', 'b'].map((id) => state(device({ id, kind: 'gpu', identity: 'same' }), { verdict: sick }));
    const hit = boardWith(twins, [record(FAULT_MS, { hardware: 'toy#same' })]).devices.map(({ id, incident }) => [id, incident?.hit]);
    expect(hit).toEqual([
      ['a', ['training/llm-0-0']],
      ['b', undefined],
    ]);
  });

  it('leaves the row as it is while the record does not change', () => {
    const kept = new StepCache<ReturnType<typeof boardWith>['devices'][number]>();
    const one = record(FAULT_MS);
    const devices = [gpu('a')];
    const rowOf = (incidents: readonly IncidentSummary[]) =>
      boardOf({ ...sample, allocations: [], devices }, { nowMs: TAKEN_AT_MS, incidents, kept }).devices[0];
    const before = rowOf([one]);
    expect(rowOf([one])).toBe(before);
    expect(rowOf([])?.incident).toBeUndefined();
  });
});
