import type { Board } from '../../board/board.ts';
import type { Trends } from '../../board/trend.ts';
import { defined } from '../../model/defined.ts';
import type { Abilities } from '../terminal/abilities.ts';
import type { Key } from '../terminal/keys.ts';
import { Painter } from '../terminal/painter.ts';
import type { Screen } from '../terminal/screen.ts';
import { ROOMY_COLUMNS } from './columns.ts';
import type { DeviceDetail } from './detail.ts';
import { type Frame, frameOf } from './frame.ts';
import { pressed, type TopState } from './state.ts';

/** Connects keys, boards and the screen. */
export class TopApp {
  /** Resolves when the user ended it or the terminal is gone; fails with an error of the program. */
  readonly ended: Promise<void>;
  readonly #screen: Screen;
  readonly #painter: Painter;
  readonly #isUtf8: boolean;
  #state: TopState;
  #frame: Frame | undefined;
  #source: BoardSource | undefined;
  #board: Board | undefined;
  #trends: Trends | undefined;
  #problem: { readonly text: string; readonly sinceMs: number } | undefined;
  #detail: { readonly key: string; readonly detail: DeviceDetail | undefined } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #end: () => void = () => {};
  #fail: (error: unknown) => void = () => {};
  #isEnded = false;
  #isReading = false;

  constructor(screen: Screen, abilities: Abilities, state: TopState) {
    this.#screen = screen;
    this.#painter = new Painter(abilities);
    this.#isUtf8 = abilities.isUtf8;
    this.#state = state;
    this.ended = new Promise<void>((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
    }).finally(() => {
      this.#isEnded = true;
      clearTimeout(this.#timer);
    });
    screen.onKey((key) => this.#guarded(() => this.#pressed(key)));
    screen.onResize(() => this.#guarded(() => this.#draw()));
    screen.onGone(() => this.#end());
    this.#guarded(() => this.#draw());
  }

  readonly fail = (error: unknown): void => this.#fail(error);

  /** Shows the boards of a source from now on. */
  follow(source: BoardSource): void {
    this.#source = source;
    void this.#refresh(source);
  }

  async #refresh(source: BoardSource): Promise<void> {
    try {
      const isRoomy = this.#screen.size().columns >= ROOMY_COLUMNS;
      const [{ problem, ...answer }] = await Promise.all([source.board(isRoomy), this.#readDetail(source)]);
      if (this.#isEnded) return;
      if (answer.board !== undefined) [this.#board, this.#trends] = [answer.board, answer.trends];
      this.#problem = problem === undefined ? undefined : { text: problem, sinceMs: this.#problem?.sinceMs ?? Date.now() };
      this.#draw();
      void this.#readOther(source).catch(this.fail);
      this.#timer = setTimeout(() => void this.#refresh(source), source.intervalMs);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Reads what the device shows that is open, or that stands beside the list. */
  async #readDetail(source: BoardSource): Promise<void> {
    const device = this.#wanted();
    if (device === undefined) return;
    const detail = await source.detail(device.family, device.id);
    // What was known of it stays while the agent does not answer.
    if (detail !== undefined || this.#detail?.key !== device.key) this.#detail = { key: device.key, detail };
  }

  #wanted(): Frame['chosen'] {
    const { screen, device } = this.#state;
    return screen === 'device' ? device : screen === 'board' ? this.#frame?.chosen : undefined;
  }

  /** Reads it at once when another device is wanted. Of many keys in a row, the last one counts. */
  async #readOther(source: BoardSource): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isEnded && this.#wanted() !== undefined && this.#wanted()?.key !== this.#detail?.key) {
        await this.#readDetail(source);
        this.#draw();
      }
    } finally {
      this.#isReading = false;
    }
  }

  #pressed(key: Key): void {
    if (key === 'ctrl-l') this.#painter.forget();
    const next = pressed(this.#state, key, this.#frame?.shown ?? { items: [], room: 1, length: 0 });
    if (next === undefined) {
      this.#end();
      return;
    }
    this.#state = next;
    this.#draw();
    if (this.#source !== undefined) void this.#readOther(this.#source).catch(this.fail);
  }

  #draw(): void {
    if (this.#isEnded) return;
    const size = this.#screen.size();
    this.#frame = frameOf({
      state: this.#state,
      board: this.#board,
      trends: this.#trends,
      sourceState: {
        source: this.#source?.name ?? 'asks the agent',
        ...defined({ problem: this.#problem?.text, problemSinceMs: this.#problem?.sinceMs }),
      },
      detail: this.#detail,
      size,
      isUtf8: this.#isUtf8,
    });
    this.#state = this.#frame.state;
    this.#screen.write(this.#painter.paint(this.#frame.lines, size));
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** One answer of a source: the board, or why there is none now. */
export type BoardAnswer =
  | { readonly board: Board; readonly trends?: Trends; readonly problem?: undefined }
  | { readonly board?: undefined; readonly problem: string };

/** Where the screen has its boards from. */
export interface BoardSource {
  /** `agent at :9400`. */
  readonly name: string;
  /** Time between two boards. */
  readonly intervalMs: number;
  /** `hasTrends`: with the history of each device, where it is known. */
  board(hasTrends: boolean): Promise<BoardAnswer>;
  /** What the board leaves out of one device; undefined when it is not known. */
  detail(family: string, id: string): Promise<DeviceDetail | undefined>;
}
