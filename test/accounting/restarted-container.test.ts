import { expect, it } from 'vitest';
import { entriesOf, entryReader, toRecord } from '../../src/accounting/ledger/entry.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, holds, report, savedText, usageParts } from './small-node.ts';

const entryOf = await entryReader();
const WALL = Date.parse('2030-01-01T00:00:00Z');
const STEP = 10_000;

/** A pod that holds a GPU over ten looks; the container with each id has a process on it at these looks, an agent restarts before `again`. */
function play(runs: Readonly<Record<string, readonly number[]>>, again?: number, uidOf = (_look: number) => 'uid-f') {
  let parts = usageParts();
  let agent = assembler(parts);
  let snapshot: ReturnType<typeof agent.assemble> | undefined;
  for (let look = 0; look < 10; look += 1) {
    const now = look * STEP;
    if (look === again) {
      parts = usageParts({ text: savedText(parts), gapMs: STEP, monotonicMs: now });
      agent = assembler(parts);
    }
    const processes = Object.entries(runs)
      .filter(([, looks]) => looks.includes(look))
      .map(([containerId], n) => ({ pid: 100 + n, name: 'job', podUid: uidOf(look), containerId }));
    const latest = lookAt(listed([report(gpu('g0'), gpuReadings(1, now), processes)]), WALL + now, now, now - 20);
    const held = [holds('g0', 'f')];
    snapshot = agent.assemble(
      {
        families: [{ state: familyState('gpu'), latest }],
        podResources: podResources(held, { answeredAtMs: WALL + now }),
        checkpoint: held.map(({ container, resource, deviceId }) => ({ podUid: uidOf(look), container, resource, deviceIds: [deviceId] })),
      },
      { nowMs: WALL + now, monotonicMs: now },
    );
  }
  return snapshot as NonNullable<typeof snapshot>;
}

const FIRST = [0, 1, 2, 3];
const SECOND = [6, 7, 8, 9];

it.each([['with one agent'], ['with an agent that restarts at the same time', 5]])(
  'a container that restarts in its pod keeps its account, which says when, %s',
  (_, again?: number) => {
    const snapshot = play({ a: FIRST, b: SECOND }, again);
    expect(snapshot.usage?.containers).toMatchObject([{ pod: 'f', sinceMs: WALL, restarts: 1, restartedMs: WALL + 6 * STEP }]);
    const [line] = entriesOf(snapshot).map((entry) => entryOf({ ...toRecord(entry) } as Record<string, unknown>));
    expect(line).toMatchObject({ kind: 'container', restarts: 1, restartedMs: WALL + 6 * STEP });
  },
);

it('says of no restart where none is known: one run, two containers at once, another pod', () => {
  const restarts = (...words: Parameters<typeof play>) => play(...words).usage?.containers.map((one) => one.restarts);
  expect(restarts({ a: [...FIRST, ...SECOND] })).toEqual([undefined]);
  expect(restarts({ a: [...FIRST, ...SECOND], b: SECOND })).toEqual([undefined]);
  expect(restarts({ a: FIRST, b: SECOND }, undefined, (look) => (look < 5 ? 'uid-f' : 'uid-g'))).toEqual([undefined, undefined]);
});
