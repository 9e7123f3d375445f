import { describe, expect, it } from 'vitest';
import { findingsOf, sentenceOf } from '../../../src/board/summary.ts';
import type { Trend } from '../../../src/board/trend.ts';
import { filtersOf } from '../../../src/board/view.ts';
import { REMEDY_TEXTS } from '../../../src/board/words.ts';
import { widthOf } from '../../../src/cli/terminal/frame.ts';
import { clean } from '../../../src/cli/terminal/painter.ts';
import { detailOf } from '../../../src/cli/top/detail.ts';
import { frameOf, type Picture } from '../../../src/cli/top/frame.ts';
import { shrunk, sparkText } from '../../../src/cli/top/spark-text.ts';
import { FIRST_STATE, pressed, type TopState } from '../../../src/cli/top/state.ts';
import { fixedBoard } from './fixed-board.ts';

const board = fixedBoard();
const picture = (state: TopState, columns: number, rows: number, isUtf8 = true): Picture => ({
  state,
  board,
  sourceState: { source: 'agent at :1' },
  detail: undefined,
  size: { columns, rows },
  isUtf8,
});
const textOf = (shown: Picture): string[] => frameOf(shown).lines.map((line) => line.map(({ text }) => text).join(''));

const KEYS = [
  'up',
  'down',
  'k',
  'j',
  'page-up',
  'page-down',
  'home',
  'end',
  's',
  't',
  'p',
  'n',
  '/',
  'enter',
  'escape',
  '?',
  'x',
  'backspace',
];

describe('frames', () => {
  it('are drawn at every size, as many lines as the terminal has', () => {
    for (let columns = 1; columns <= 220; columns += 3) {
      for (const rows of [1, 2, 3, 5, 9, 24, 60]) {
        for (const screen of ['board', 'device', 'help'] as const) {
          const device = board.devices[0];
          const lines = textOf(picture({ ...FIRST_STATE, screen, device }, columns, rows));
          expect(lines).toHaveLength(Math.max(1, rows));
        }
      }
    }
  });

  it.each([
    ['starts', 'The first read runs'],
    ['fails', 'No device was found, but toy cannot be read'],
  ] as const)('do not say that there is no device while no read of a family succeeded: it %s', (state, sentence) => {
    const families = [{ family: 'toy', complete: false, devices: 0, state }];
    const early = { ...picture(FIRST_STATE, 100, 24), board: { ...board, devices: [], families, problems: [], unresolved: [] } };
    const shown = textOf(early).join('\n');
    expect(shown).toContain(sentence);
    expect(shown).toContain('Not read yet: toy.');
    expect(shown).not.toContain('There is no device');
  });

  it('say how many devices are known to be held while some holders are unknown', () => {
    const devices = board.devices.map((one) => ({ ...one, use: 'unknown' as const, holders: [] }));
    const early = { ...picture(FIRST_STATE, 100, 24), board: { ...board, devices, counts: { ...board.counts, held: 0 } } };
    expect(textOf(early).join('\n')).toContain('0 known to be held');
    expect(textOf(picture(FIRST_STATE, 100, 24)).join('\n')).not.toContain('known to be held');
  });

  it('name the other faults below the sentence', () => {
    const [first, ...all] = findingsOf(board);
    const others = all.filter(({ appearance }) => appearance !== 'recovering');
    const shown = textOf(picture(FIRST_STATE, 200, 40)).find((line) => line.startsWith('and ')) ?? '';
    expect([first, others.length > 0]).toEqual([expect.anything(), true]);
    expect(shown).toContain(`and ${others.length} more fault`);
    for (const { devices, phrase } of others.filter((one) => one.devices.length === 1))
      expect(shown).toContain(`${devices[0]?.name} ${phrase}`);
  });

  it('have all columns of a wide list also where the chosen device stands beside it', () => {
    const headOf = (columns: number): readonly string[] =>
      (textOf(picture(FIRST_STATE, columns, 60)).find((line) => line.includes('STATE')) ?? '').split('│')[0]?.trim().split(/ {2,}/) ?? [];
    for (const columns of [180, 200, 220]) expect(headOf(columns)).toEqual(expect.arrayContaining([...headOf(120)]));
  });

  it('keep the columns in line: each cell begins where its head begins', () => {
    for (let columns = 24; columns <= 220; columns += 7) {
      const lines = textOf(picture(FIRST_STATE, columns, 40));
      const head = lines.findIndex((line) => line.includes('STATE'));
      const at = lines[head]?.indexOf('DEVICE') ?? -1;
      const rows = lines.slice(head + 1, head + 16).filter((line) => !line.startsWith('      '));
      for (const line of rows.slice(0, 8)) expect(line.slice(at - 1, at + 3)).toMatch(/^ (?:GPU|mlx|└ |001)/);
    }
  });

  it('have one cell for each sign, so that nothing is shifted', () => {
    for (const isUtf8 of [true, false]) {
      for (const line of textOf(picture(FIRST_STATE, 100, 40, isUtf8))) expect(widthOf(clean(line, isUtf8))).toBe(widthOf(line));
    }
  });

  it('take any sequence of keys, and always show the chosen row', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    let state = FIRST_STATE;
    for (let step = 0; step < 2_000; step += 1) {
      const size = { columns: 1 + random(120), rows: 1 + random(30) };
      const frame = frameOf({ ...picture(state, size.columns, size.rows), size });
      if (frame.state.screen === 'board') {
        const { at, offset } = frame.state;
        expect(at).toBeGreaterThanOrEqual(offset);
        expect(at).toBeLessThan(offset + frame.shown.room);
        expect(frame.shown.items[at]).toBeDefined();
      }
      state = pressed(frame.state, KEYS[random(KEYS.length)] as string, frame.shown) ?? FIRST_STATE;
    }
  });

  it('keep the chosen device when the order changes', () => {
    const first = frameOf(picture(FIRST_STATE, 100, 30));
    const down = pressed(first.state, 'down', first.shown) as TopState;
    const chosen = board.devices.find(({ key }) => down.chosen?.endsWith(key));
    const resorted = frameOf(picture({ ...down, sort: 'name' }, 100, 30));
    expect(resorted.shown.items[resorted.state.at]?.row?.row.key).toBe(chosen?.key);
  });

  it('say that a device is gone', () => {
    const device = { key: 'nvidia/none', family: 'nvidia', id: 'none' };
    expect(textOf(picture({ ...FIRST_STATE, screen: 'device', device }, 80, 24)).join('\n')).toContain('nvidia/none is no longer listed.');
  });
});

describe('the list', () => {
  it('begins with the sentence, whole where it needs several lines, and has node and time where there is room', () => {
    for (const columns of [50, 80, 120, 200]) {
      const lines = textOf(picture(FIRST_STATE, columns, 40));
      expect(
        lines
          .slice(0, 3)
          .map((line) => line.trim())
          .join(' '),
      ).toContain(sentenceOf(board));
      expect(lines.slice(0, 6).filter((line) => line.includes('node-7 · '))).toHaveLength(1);
    }
  });

  it('says below each faulty device what it has and what to do, and never cuts what to do', () => {
    for (const columns of [40, 80, 120]) {
      const frame = frameOf(picture(FIRST_STATE, columns, 400));
      const told = frame.shown.items.flatMap(({ why }) => why ?? []);
      expect(told.every((line) => widthOf(line) <= columns)).toBe(true);
      const text = told.map((line) => line.trim()).join(' ');
      for (const { health, missingSince } of board.devices) {
        const [lead] = health.conditions;
        if (lead === undefined || missingSince !== undefined || lead.ofWhole !== undefined || lead.severity === 'info') continue;
        expect(text).toContain(lead.type);
        expect(text).toContain(REMEDY_TEXTS[lead.remedy] ?? '');
      }
    }
  });

  it('is walked device by device', () => {
    let frame = frameOf(picture(FIRST_STATE, 80, 24));
    const seen: (string | undefined)[] = [];
    for (const key of [...Array(board.devices.length).fill('down'), ...Array(board.devices.length).fill('up')]) {
      frame = frameOf(picture(pressed(frame.state, key, frame.shown) as TopState, 80, 24));
      expect(frame.shown.items[frame.state.at]?.why).toBeUndefined();
      seen.push(frame.shown.items[frame.state.at]?.row?.row.key);
    }
    expect(new Set(seen).size).toBeGreaterThanOrEqual(board.devices.length);
    expect(frame.state.at, 'back at the first line').toBe(0);
  });

  it('has ages and histories where there is room, and no history where none is known', () => {
    const trends = Object.fromEntries(board.devices.map(({ key }) => [key, [null, 1, 2]]));
    const headOf = (columns: number, more: Partial<Picture> = {}): string =>
      textOf({ ...picture(FIRST_STATE, columns, 24), ...more }).find((line) => line.includes('DEVICE')) ?? '';
    expect(headOf(120, { trends })).toMatch(/STATE +FOR +DEVICE +HELD BY +READINGS +HISTORY +CONDITION/);
    expect(headOf(80, { trends })).not.toMatch(/FOR|HISTORY/);
    expect(headOf(120)).not.toContain('HISTORY');
    expect(headOf(120, { trends, isUtf8: false }), 'ASCII has no signs for it').not.toContain('HISTORY');
  });
});

describe('filters', () => {
  it.each([
    ['', {}],
    ['gpu  held', { text: 'gpu held' }],
    ['state:unh mlx', { state: 'unhealthy', text: 'mlx' }],
    ['family:nvidia namespace:ml holder:train', { family: 'nvidia', namespace: 'ml', holder: 'train' }],
    ['state:', {}],
    ['state:broken', { text: 'state:broken' }],
  ])('%j means %j', (typed, filters) => {
    expect(filtersOf(typed)).toEqual(filters);
  });
});

describe('detail of a device', () => {
  it('has no empty list of events where they were not read', () => {
    for (const events of [undefined, {}, { error: 'busy' }]) expect(detailOf({}, events, 'a/b')).toMatchObject({ events: undefined });
    expect(detailOf({}, { events: [] }, 'a/b')).toMatchObject({ events: [] });
  });

  it('leaves out what has another form', () => {
    expect(detailOf(undefined, undefined, 'a/b')).toBeUndefined();
    expect(detailOf({ id: 7, readings: { busy: 'x', list: [3, { value: 'y' }] } }, { events: [null, { device: 'c/d' }] }, 'a/b')).toEqual({
      facts: [],
      readings: [],
      events: [],
      trends: new Map(),
    });
  });
});

describe('a history in cells', () => {
  it('is the mean of what was read in the time of each cell', () => {
    expect(shrunk([1, 3, null, 4, null, null, 8, 8], 4)).toEqual([2, 4, null, 8]);
    expect(shrunk([], 2)).toEqual([null, null]);
  });

  it.each<[string, Trend, number | undefined, number, string]>([
    ['ends at the present, and has gaps', [0, null, 50, 100], 100, 6, '  ▁ ▅█'],
    ['has the highest value as its height without a limit', [1, 2, 4], undefined, 3, '▃▅█'],
    ['shows its last part where there is no room', [8, 8, 0, 8], 8, 2, '▁█'],
    ['is low while all is 0', [0, 0], undefined, 2, '▁▁'],
  ])('%s', (_what, trend, full, cells, text) => {
    expect(sparkText(trend, full, cells)).toBe(text);
  });
});
