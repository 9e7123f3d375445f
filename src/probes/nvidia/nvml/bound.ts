import { driverVersionOf } from './driver-version.ts';
import { bindGpm, type GpmCalls } from './gpm.ts';
import { InstanceFinder } from './instances.ts';
import type { Library } from './library.ts';
import type { Memory } from './memory.ts';
import { bindLinks, type LinkCalls } from './nvlink.ts';
import { ProcessList } from './process-list.ts';
import { ProcessShares } from './process-shares.ts';
import { bindQuestions, type Questions } from './questions.ts';

/** Everything that reads GPUs, bound to one library and driver. One call at a time: all write into the same memory. */
export interface Bound {
  readonly questions: Questions;
  readonly processes: ProcessList;
  readonly shares: ProcessShares;
  readonly finder: InstanceFinder;
  readonly links: LinkCalls;
  /** Undefined where the driver does not know them, or they are not wanted. */
  readonly gpm: GpmCalls | undefined;
}

export function bindAll(library: Library, scratch: Memory, driver: string, isActivityWanted: boolean): Bound {
  const version = driverVersionOf(driver);
  return {
    questions: bindQuestions(library, version),
    processes: new ProcessList(library, version),
    shares: new ProcessShares(library),
    finder: new InstanceFinder(library, scratch),
    links: bindLinks(library, scratch),
    gpm: isActivityWanted ? bindGpm(library) : undefined,
  };
}
