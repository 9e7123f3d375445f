/** A request to close the driver of a family. The agent then reads no device of the family. Plain data. */
export interface Release {
  /** Who asked for it. */
  readonly by: string;
  /** Wall clock at which it ends by itself; absent when it ends with its cause. */
  readonly untilMs?: number;
}

/** Asks for a release, or ends one. */
export interface ReleaseRequest {
  readonly family: string;
  /** How long, from now on. 0 ends the release. */
  readonly forMs: number;
  readonly by: string;
}

/** Result of the request. `hanging`: number of calls that hang in the driver. They keep the driver open until they return. */
export type ReleaseAnswer =
  | { readonly family: string; readonly untilMs: number | undefined; readonly hanging: number; readonly refused?: undefined }
  | { readonly refused: string };

/** Longest release that one request can ask for. */
export const MAX_RELEASE_MS = 86_400_000;
