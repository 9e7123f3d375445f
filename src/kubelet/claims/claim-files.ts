import type { DocumentProblem } from '../../host/documents/kind.ts';
import type { ClaimHardware } from '../../model/claim-hardware.ts';

/** Facts about claims from the files of drivers. */
export interface ClaimFiles {
  /** Keyed by `claimDeviceKey`. */
  readonly hardware: ReadonlyMap<string, ClaimHardware>;
  /** Files that were not used. */
  readonly problems: readonly DocumentProblem[];
}
