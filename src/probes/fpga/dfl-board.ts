import type { Layout } from './dfl-layout.ts';
import { byUnits } from './name-order.ts';
import type { Placed } from './survey.ts';

/** A part of a board: `dfl-fme.0` and where its files are. */
export interface Unit {
  readonly name: string;
  readonly path: string;
}

/** One PCI function with its management engine and its ports. */
export interface DflFunction {
  readonly layout: Layout;
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly Unit[];
}

/** One board: its physical function and all ports, those on virtual functions included. */
export interface DflBoard {
  readonly layout: Layout;
  /** Of the physical function. */
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly (Unit & { readonly address: string })[];
}

/** Puts the ports of virtual functions to the board of their physical function. Pure. */
export function groupByBoard(
  functions: readonly DflFunction[],
  physicalFunctionOf: (address: string) => string | undefined,
): readonly DflBoard[] {
  const boards = new Map<string, DflBoard>();
  for (const { layout, address, engines, ports } of functions) {
    const board = physicalFunctionOf(address) ?? address;
    const before = boards.get(board);
    boards.set(board, {
      layout,
      address: board,
      engines: [...(before?.engines ?? []), ...engines],
      ports: [...(before?.ports ?? []), ...ports.map((port) => ({ ...port, address }))],
    });
  }
  return [...boards.values()].sort((a, b) => byUnits(a.address, b.address));
}

export function onBoard(board: DflBoard, placed: readonly Placed[]): readonly Placed[] {
  return placed.filter(({ address }) => address === board.address);
}
