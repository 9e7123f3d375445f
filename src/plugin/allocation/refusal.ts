/** Why a call of the kubelet is refused. Closed set: value of the label `result`. */
export type RefusalReason = 'unknown-device' | 'unhealthy-device' | 'unsupported-strategy' | 'invalid-request';

/** The kubelet puts the message into the pod's status, so it says which device and why. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
  }
}
