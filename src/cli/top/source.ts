import type { Board } from '../../board/board.ts';
import type { DeviceDetail } from './detail.ts';

/** One answer of a source: the board, or why there is none now. */
export type BoardAnswer =
  | { readonly board: Board; readonly problem?: undefined }
  | { readonly board?: undefined; readonly problem: string };

/** Where the screen has its boards from. */
export interface BoardSource {
  /** `agent at :9400`, or that the command reads by itself. */
  readonly name: string;
  /** Time between two boards. */
  readonly intervalMs: number;
  board(): Promise<BoardAnswer>;
  /** What the board leaves out of one device; undefined when it is not known. */
  detail(family: string, id: string): Promise<DeviceDetail | undefined>;
  /** Resolves to false when a thread is stuck in the kernel. */
  close(): Promise<boolean>;
}
