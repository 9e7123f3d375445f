/** Why a kubelet call is refused. Closed set, used as values of the label `result`. */
export type RefusalReason = 'unknown-device' | 'unhealthy-device' | 'unsupported-strategy' | 'invalid-request';

/** The kubelet copies the message into the pod's status, so the message names the device and the reason. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
  }
}
