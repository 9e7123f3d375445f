/** A kind of devices that contain others. The texts are cells of the reference of metrics. */
export interface PartSums {
  readonly parent: string;
  readonly parts: string;
  /** Which values of the parent include those of its parts. */
  readonly areIncluded: string;
}
