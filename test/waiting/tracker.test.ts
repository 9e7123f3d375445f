import { describe, expect, it } from 'vitest';
import { HOPPER, spinning, training, VOLTA } from '../stall/corpus/figures.ts';
import { always, hang, type Play, play } from '../stall/corpus/simulation.ts';
import type { StallHistory } from '../stall/history.ts';
import { replay, settings } from '../stall/replay.ts';

const plan: Play = {
  name: 'a hang',
  kind: 'hang',
  source: 'simulation',
  seed: 1,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [
    { forSeconds: 1_800, work: training(30, 1) },
    { forSeconds: 900, work: spinning },
  ],
  truth: hang(1_800, 2_700),
};
const [POD] = play(plan).containers;
const lastOf = (history: StallHistory, using = settings()) => replay(history, using).last;

describe('the tracker of waiting containers', () => {
  it('judges all devices of a container together', () => {
    expect(lastOf(play(plan))).toEqual([
      {
        namespace: 'team',
        pod: 'job-0',
        container: 'main',
        devices: ['nvidia/gpu0', 'nvidia/gpu1'],
        state: 'stalled',
        sinceMs: expect.any(Number),
        lastProgressMs: expect.any(Number),
        stepSeconds: expect.closeTo(30, 0),
      },
    ]);
  });

  it('counts the bytes of all containers of the pod', () => {
    const history = play(plan);
    const [gpus, nics] = [
      ['gpu0', 'gpu1'],
      ['nic0', 'nic1'],
    ];
    const split = {
      ...history,
      containers: [
        { ...POD, devices: gpus },
        { ...POD, container: 'proxy', devices: nics },
      ],
    } as StallHistory;
    expect(lastOf(split)).toMatchObject([{ container: 'main', state: 'stalled' }]);
    const moving = split.reads.map((read) => ({
      ...read,
      devices: { ...read.devices, nic1: { nicBytesPerSecond: 9e9 } },
    }));
    expect(lastOf({ ...split, reads: moving })).toMatchObject([{ container: 'main', state: 'not-waiting' }]);
  });

  it('does not take the next run of a container in the same pod for the last one', () => {
    const runs = (second: string) => [
      { fromSeconds: 0, containerId: 'a'.repeat(64) },
      { fromSeconds: 1_800, containerId: second.repeat(64) },
    ];
    const history = play(plan);
    expect(lastOf({ ...history, runs: runs('a') }), 'the same run').toMatchObject([{ state: 'stalled', stepSeconds: expect.any(Number) }]);
    const [next] = lastOf({ ...history, runs: runs('b') });
    expect(next?.state, 'nothing is known of its steps').not.toBe('stalled');
    expect(next).not.toHaveProperty('stepSeconds');
    expect(next?.lastProgressMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(Date.parse('2026-01-01T00:30:00Z'));
  });

  it('does not take it for the last one either when the agent restarts at the same time', () => {
    const history = play({ ...plan, restarts: [{ endedAtSeconds: 1_790, startedAtSeconds: 1_810 }] });
    const runs = (second: string) => [
      { fromSeconds: 0, containerId: 'a'.repeat(64) },
      { fromSeconds: 1_800, containerId: second.repeat(64) },
    ];
    expect(lastOf({ ...history, runs: runs('a') }), 'the same run').toMatchObject([{ state: 'stalled', stepSeconds: expect.any(Number) }]);
    const [next] = lastOf({ ...history, runs: runs('b') });
    expect(next?.state).not.toBe('stalled');
    expect(next).not.toHaveProperty('stepSeconds');
  });

  it('says why it does not know', () => {
    const phases = [...plan.phases.slice(0, 1), { forSeconds: 900, work: always({ busy: true, watts: 45 }) }];
    const history = play({ ...plan, phases, machine: { ...VOLTA, nics: 0 } });
    expect(lastOf(history)).toMatchObject([{ state: 'unknown', unknown: 'not read: the bytes of a link' }]);
    const [own] = history.containers;
    const sharing = { ...history, containers: [own, { ...own, pod: 'other' }] } as StallHistory;
    expect(lastOf(sharing)[0]).toMatchObject({ state: 'unknown', unknown: 'it shares nvidia/gpu0 with other containers' });
  });

  it('leaves out a model whose utilization is not reliable, with the source', () => {
    const using = settings();
    const watched = new Map(using.watched);
    const nvidia = watched.get('nvidia');
    if (nvidia?.progress === undefined) throw new Error('the family declares no progress');
    const unreliable = [{ model: 'H200', source: 'a test' }];
    watched.set('nvidia', { ...nvidia, progress: { ...nvidia.progress, unreliable } });
    expect(lastOf(play(plan), { ...using, watched })).toMatchObject([
      { state: 'unknown', unknown: 'the utilization of H200 is not reliable (a test)' },
    ]);
  });

  it('does not know while one of the devices is not read', () => {
    const history = play(plan);
    const reads = history.reads.map((read) => {
      const { gpu1, ...others } = read.devices;
      return read.atSeconds > 2_000 && read.atSeconds < 2_300 ? { ...read, devices: others } : read;
    });
    expect(lastOf({ ...history, reads: reads.filter(({ atSeconds }) => atSeconds < 2_295) })).toMatchObject([
      { state: 'unknown', unknown: 'nvidia/gpu1 was not read for a time' },
    ]);
    expect(lastOf({ ...history, reads })).toMatchObject([{ state: 'unknown' }]);
  });

  it('starts anew with another container of the same name', () => {
    const history = play(plan);
    const later = {
      ...history,
      containers: [
        { ...POD, toSeconds: 1_799 },
        { ...POD, fromSeconds: 1_810 },
      ],
    } as StallHistory;
    expect(lastOf(later)).toMatchObject([{ state: 'unknown' }]);
  });

  it('is silent while it is switched off, and without a GPU', () => {
    const history = play(plan);
    expect(lastOf(history, settings({ enabled: false }))).toEqual([]);
    expect(lastOf({ ...history, containers: [{ ...POD, devices: ['nic0'] }] } as StallHistory)).toEqual([]);
  });
});
