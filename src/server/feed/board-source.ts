import { type Board, boardOf, type RemedyOf } from '../../board/board.ts';
import type { ChosenReading } from '../../board/chosen-reading.ts';
import type { DeviceView, DisplayReading } from '../../board/device-view.ts';
import type { IncidentSummary } from '../../board/incident.ts';
import { chooseNumbers, chooseReadings, type PageReadingsOf } from '../../board/readings.ts';
import { ratesOf, TREND_MS, type Trend, type Trends, trendOf } from '../../board/trend.ts';
import { timeText } from '../../board/units.ts';
import type { ReadingHistoryStore } from '../../incidents/history.ts';
import { defined } from '../../model/defined.ts';
import { memoizedBy } from '../../model/readings.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import { StepCache } from '../../model/step-cache.ts';

export interface BoardSourceDependencies {
  snapshot(): Snapshot | undefined;
  readonly history: (() => ReadingHistoryStore) | undefined;
  /** The newest first. */
  incidents(): readonly IncidentSummary[];
  readonly node: string | undefined;
  /** Why the agent does not do its work. It comes without a new snapshot. */
  fault(): string | undefined;
  remedyOf: RemedyOf;
  titleOf(family: string): string | undefined;
  readonly shownOf: PageReadingsOf;
  now(): number;
}

/** The last half hour of one reading of a row. */
export interface ReadingTrend {
  readonly label: string;
  readonly trend: Trend;
}

/** The board of the latest snapshot. It is made once for all pages and streams, and only when somebody asks. */
export class BoardSource {
  readonly #parts: BoardSourceDependencies;
  #made: { readonly snapshot: Snapshot; readonly board: Board } | undefined;
  readonly #rows = new StepCache<DeviceView>();
  #trends: { readonly snapshot: Snapshot; readonly trends: Trends } | undefined;

  constructor(parts: BoardSourceDependencies) {
    this.#parts = parts;
  }

  /** undefined before the first snapshot. */
  current(): Board | undefined {
    const snapshot = this.#parts.snapshot();
    return snapshot && this.of(snapshot);
  }

  of(snapshot: Snapshot): Board {
    if (this.#made?.snapshot !== snapshot) this.#made = { snapshot, board: this.#boardOf(snapshot) };
    const fault = this.#parts.fault();
    return { ...this.#made.board, now: timeText(this.#parts.now()), ...defined({ fault }) };
  }

  /** The readings of the page of one device. */
  numbersOf(state: DeviceState): readonly DisplayReading[] {
    const kept = this.#parts.history?.();
    return chooseNumbers(state, { rateOf: kept?.rateOf.bind(kept), shownOf: this.#parts.shownOf });
  }

  trends(): Trends {
    const snapshot = this.#parts.snapshot();
    if (snapshot === undefined || this.#parts.history === undefined) return {};
    if (this.#trends?.snapshot !== snapshot) this.#trends = { snapshot, trends: this.#trendsOf(snapshot) };
    return this.#trends.trends;
  }

  /** The trend of each reading that the row of a device shows; undefined while no readings are kept of such a device. */
  trendsOf(key: string): readonly ReadingTrend[] | undefined {
    const [snapshot, history] = [this.#parts.snapshot(), this.#parts.history?.()];
    const state = snapshot?.devices.find((one) => one.key === key);
    if (snapshot === undefined || history === undefined || state === undefined) return undefined;
    return chooseReadings(state, { shownOf: this.#parts.shownOf }).map((reading) => ({
      label: reading.label,
      trend: readingTrend(key, reading, history, snapshot.takenAtMs),
    }));
  }

  #boardOf(snapshot: Snapshot): Board {
    const { history, node, remedyOf, titleOf, shownOf, now } = this.#parts;
    const kept = history?.();
    const [rateOf, incidents] = [kept && rateIn(kept), this.#parts.incidents()];
    return boardOf(snapshot, { nowMs: now(), remedyOf, titleOf, shownOf, node, rateOf, incidents, kept: this.#rows });
  }

  #trendsOf({ devices, takenAtMs }: Snapshot): Trends {
    const kept = this.#parts.history?.();
    if (kept === undefined) return {};
    return Object.fromEntries(
      devices.flatMap((state) => {
        const trend = deviceTrend(state, kept, takenAtMs, this.#parts.shownOf);
        return trend === undefined ? [] : [[state.key, trend]];
      }),
    );
  }
}

const rateIn = memoizedBy((history: ReadingHistoryStore) => history.rateOf.bind(history));

function deviceTrend(state: DeviceState, history: ReadingHistoryStore, endMs: number, shownOf: PageReadingsOf): Trend | undefined {
  const [first] = chooseReadings(state, { shownOf });
  return first && readingTrend(state.key, first, history, endMs);
}

function readingTrend(key: string, { series, isRate }: ChosenReading, history: ReadingHistoryStore, endMs: number): Trend {
  const columns = series.map(({ metric, labels }) => {
    const { times, values, reads } = history.samplesOf(key, metric, labels, endMs - TREND_MS);
    return { times, values: isRate ? ratesOf(times, values, reads) : values };
  });
  const [{ times } = { times: [] }] = columns;
  // The series of one device are read together, so that they have the same times.
  const sums = times.map((_, at) => sumOf(columns.map(({ values }) => values[at])));
  return trendOf(times, sums, endMs);
}

/** A sum with an absent part is no sum. */
function sumOf(values: readonly (number | null | undefined)[]): number | null {
  let sum = 0;
  for (const value of values) {
    if (value === null || value === undefined) return null;
    sum += value;
  }
  return sum;
}
