/** Why a kubelet call is refused. Closed set, used as values of the label `result`. */
export const REFUSAL_REASONS = ['unknown-device', 'unhealthy-device', 'dirty-device', 'unsupported-strategy', 'invalid-request'] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** gRPC sends the message in a trailer, and clients refuse trailers of more than 8 to 64 KiB. */
const MOST_BYTES = 1_024;

/** The kubelet copies the message into the pod's status, so the message names the device and the reason. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(cutTo(message, MOST_BYTES));
    this.name = 'Refusal';
    this.reason = reason;
  }
}

const MOST_IDS = 5;
const MOST_ID_LENGTH = 100;

/** Lists the first ids in quotes, and counts the others. */
export function listed(ids: readonly string[]): string {
  const shown = ids.slice(0, MOST_IDS).map((id) => JSON.stringify(id.length <= MOST_ID_LENGTH ? id : `${id.slice(0, MOST_ID_LENGTH)}…`));
  const others = ids.length - shown.length;
  return others === 0 ? shown.join(', ') : `${shown.join(', ')} and ${others} more`;
}

function cutTo(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= mostBytes) return text;
  // A character that was cut in two becomes U+FFFD, which is dropped.
  return `${bytes
    .subarray(0, mostBytes - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`;
}
