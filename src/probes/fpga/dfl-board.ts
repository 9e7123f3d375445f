import type { Layout } from './dfl-layout.ts';
import { byUnits } from './name-order.ts';
import type { Placed } from './survey.ts';

/** Management engine or port of a board, for example `dfl-fme.0`, and the directory of its files. */
export interface Unit {
  readonly name: string;
  readonly path: string;
}

/** One PCI function with its management engines and its ports. */
export interface DflFunction {
  readonly layout: Layout;
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly Unit[];
}

/** One board: its physical function and all ports, including those on virtual functions. */
export interface DflBoard {
  readonly layout: Layout;
  /** Address of the physical function. */
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly (Unit & { readonly address: string })[];
}

/** Assigns the ports of virtual functions to the board of their physical function. Pure. */
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
