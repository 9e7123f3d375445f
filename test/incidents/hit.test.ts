import { describe, expect, it } from 'vitest';
import { holdersHit, type IncidentRecord, summaryOf } from '../../src/incidents/record.ts';
import { incidentText } from '../../src/server/pages/incident-text.ts';

const at = (second: number): string => new Date(Date.parse('2030-01-01T12:00:00Z') + second * 1_000).toISOString();
const holder = (pod: string, until?: number) => ({
  ...{ namespace: 'ml', pod, container: 'main', resource: 'example.com/nic', deviceId: 'a', since: at(-600) },
  ...(until === undefined ? {} : { until: at(until) }),
});
const condition = (type: string, since: number) =>
  ({ type, severity: 'fatal', reason: 'Because', message: 'x', remedy: 'check-cable', since: at(since) }) as const;

/** A port that went down at 0 and counted at 30. The condition Old has held for ten minutes. */
const record = (readAt: readonly number[], ...holders: IncidentRecord['holders']): IncidentRecord => ({
  ...{
    id: 'i',
    time: at(30),
    node: 'n',
    agentVersion: '1',
    host: {},
    processes: [],
    state: [],
    events: [],
    others: [],
    kernel: { lines: [] },
  },
  device: { family: 'toy', id: 'a', kind: 'nic', aliases: [], key: 'toy/a' },
  before: { state: 'degraded' },
  after: { state: 'unhealthy', conditions: [condition('PortDown', 0), condition('Old', -600)] },
  changes: [
    { time: at(30), from: 'degraded', to: 'unhealthy', condition: 'PortDown', reason: 'Because', message: 'x', remedy: 'check-cable' },
  ],
  readings: { times: readAt.map(at), series: [] },
  holders,
});
const hit = (one: IncidentRecord): readonly string[] => holdersHit(one).map(({ pod }) => pod);

describe('an incident', () => {
  it('hits who holds the device, and who let go of it after the last read without the fault', () => {
    const all = [holder('now'), holder('lost', -3), holder('between', 10), holder('ended', -11), holder('long-ago', -210)];
    expect(hit(record([-20, -10, 0, 10], ...all))).toEqual(['now', 'lost', 'between']);
    expect(summaryOf(record([-20, -10, 0, 10], ...all)).holders).toEqual(['ml/now/main', 'ml/lost/main', 'ml/between/main']);
  });

  it('has a bound where reads are not known, and where the device could not be read for long', () => {
    expect(hit(record([], holder('soon', -29), holder('before', -31)))).toEqual(['soon']);
    expect(hit(record([-600], holder('soon', -119), holder('before', -121)))).toEqual(['soon']);
  });

  it('of a busy hour hits none of the pods that ended well', () => {
    const ended = Array.from({ length: 16 }, (_, n) => holder(`job-${n}`, -15 - n * 200));
    const one = record([-20, -10, 0], ...ended, holder('last'));
    expect([hit(one), summaryOf(one).holders]).toEqual([['last'], ['ml/last/main']]);
    expect(summaryOf(record([-10, 0], ...ended)).holders).toEqual([]);
    const [, text = ''] = incidentText(one).split('WHO WAS HIT\n');
    expect(text.split('\n').slice(0, 2)).toEqual([
      expect.stringMatching(/^ {2}ml\/last\/main holds it/),
      expect.stringMatching(/^ {2}Not hit, because/),
    ]);
  });
});
