import type { Bound } from './bound.ts';
import type { CallNotes } from './call-notes.ts';
import { CHANGE } from './changes.ts';
import type { Handle } from './library.ts';
import { type Listing, NO_LISTING } from './process-list.ts';
import type { Shares } from './process-shares.ts';
import type { Values } from './sheet.ts';

/** The processes of one GPU and what was spent on them, among its values. */
export class GpuProcesses {
  readonly #bound: Pick<Bound, 'processes' | 'shares'>;
  readonly #handle: Handle;
  readonly #values: Values;
  readonly #notes: CallNotes;
  #listing: Listing = NO_LISTING;
  #shares: Shares | undefined;

  constructor(bound: Pick<Bound, 'processes' | 'shares'>, handle: Handle, values: Values, notes: CallNotes) {
    this.#bound = bound;
    this.#handle = handle;
    this.#values = values;
    this.#notes = notes;
  }

  /** `isDue`: also what was spent on them. Gives bits of what changed. */
  refresh(isDue: boolean): number {
    const [listing, shares] = [this.#listing, this.#shares];
    this.#listing = this.#notes.during('nvmlDeviceGetComputeRunningProcesses', () =>
      this.#bound.processes.read(this.#handle, listing, isDue),
    );
    const { processes, isWhole } = this.#listing;
    if (processes === undefined || processes.length === 0) this.#shares = undefined;
    else if (isDue) this.#shares = this.#askShares(processes, shares);
    if (this.#listing === listing && this.#shares === shares) return CHANGE.none;
    this.#values['processes/process_info'] = withShares(processes, this.#shares);
    // Without it they are not counted.
    this.#values.processes = processes !== undefined && isWhole ? '' : undefined;
    return isWhole === listing.isWhole && arePids(listing.processes, processes) ? CHANGE.processes : CHANGE.other;
  }

  /** Nothing is known of them any more. */
  forget(): void {
    this.#values.processes = undefined;
    this.#values['processes/process_info'] = undefined;
    this.#listing = NO_LISTING;
    this.#shares = undefined;
  }

  #askShares(processes: readonly Values[], before: Shares | undefined): Shares | undefined {
    const pids = processes.map(({ pid }) => String(pid));
    return this.#notes.during('nvmlDeviceGetProcessUtilization', () => this.#bound.shares.read(this.#handle, before?.atUs ?? 0, pids));
  }
}

/** A process that came after the last look has none. */
function withShares(processes: readonly Values[] | undefined, shares: Shares | undefined): readonly Values[] | undefined {
  if (shares === undefined) return processes;
  return processes?.map((process) => ({ ...process, ...shares.byPid.get(String(process.pid)) }));
}

/** The same processes in the same order, with whatever memory. */
function arePids(before: readonly Values[] | undefined, now: readonly Values[] | undefined): boolean {
  return (
    before?.length === now?.length && before?.every(({ pid, type }, at) => pid === now?.[at]?.pid && type === now?.[at]?.type) === true
  );
}
