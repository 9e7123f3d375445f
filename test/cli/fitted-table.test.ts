import { describe, expect, it } from 'vitest';
import { fittedTable } from '../../src/cli/list/fitted-table.ts';

const COLUMNS = [
  { head: 'DEVICE', rank: 0 },
  { head: 'HEALTH', rank: 1, least: 8 },
  { head: 'LOAD', rank: 3 },
  { head: 'MODEL', rank: 6, least: 6 },
];
const ROWS = [
  ['gpu0', 'unhealthy (PortDown)', '', 'A long model'],
  ['gpu1', 'healthy', '', ''],
];

describe('a table that fits into a terminal', () => {
  it('leaves out what nobody has, and then what matters least', () => {
    expect(fittedTable(COLUMNS, ROWS, 36, false)).toBe(
      'DEVICE  HEALTH                MODEL\ngpu0    unhealthy (PortDown)  A lon…\ngpu1    healthy               -\n',
    );
    expect(fittedTable(COLUMNS, ROWS, 30, false)).toBe('DEVICE  HEALTH\ngpu0    unhealthy (PortDown)\ngpu1    healthy\n');
  });

  it('cuts long cells, and no line is wider than the terminal', () => {
    expect(fittedTable(COLUMNS, ROWS, 20, false)).toBe('DEVICE  HEALTH\ngpu0    unhealthy (…\ngpu1    healthy\n');
    for (let room = 16; room < 60; room += 1)
      for (const line of fittedTable(COLUMNS, ROWS, room, true).split('\n'))
        expect([...line].length, `${room}: ${line}`).toBeLessThanOrEqual(room);
  });

  it('tells what a line lacks on the next ones when everything is wanted', () => {
    expect(fittedTable(COLUMNS, ROWS, 24, true)).toBe(
      'DEVICE  HEALTH\ngpu0    unhealthy (Port…\n    health unhealthy\n    (PortDown), model A\n    long model\ngpu1    healthy\n',
    );
  });

  it('lets no text from outside steer the terminal', () => {
    const text = fittedTable(COLUMNS, [['a\u001b[2J', 'b\nc', '', '']], 15, true);
    expect(text).not.toContain('\u001b');
    expect(text).not.toContain('b\nc');
  });
});
