import { type Line, span } from '../terminal/frame.ts';

/** Keys as the help shows them; docs/top.md has the same table. */
export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['Up Down k j', 'one line'],
  ['PageUp PageDown Space', 'one page'],
  ['Home End g G', 'first line, last line'],
  ['Enter Right', 'one device: conditions, what to do, holders, readings, events'],
  ['Escape Left', 'back to the list'],
  ['/', 'filter: words, or family: state: namespace: holder:'],
  ['Escape', 'drop the filter'],
  ['s', 'next order: attention, name, family, state, use, busy'],
  ['t', 'by device tree: parts under their parent'],
  ['p', 'by pod'],
  ['n', 'by place in the node: NUMA and PCIe'],
  ['Ctrl-L', 'paint the screen again'],
  ['?', 'this help'],
  ['q Ctrl-C', 'end'],
];

export function helpLines(): readonly Line[] {
  return [
    [span('Keys', 'strong')],
    ...KEYS.map(([keys, what]): Line => [span(`  ${keys.padEnd(22)} `, 'strong'), span(what)]),
    [],
    [span('A device is held by parts when containers hold parts of it; it is not free.')],
    [span('A pending condition does not count yet. A recovering one ended, and still counts.')],
  ];
}
