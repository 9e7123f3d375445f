/** Whether this agent may write the state on the disk. Of two agents on a node, as in an update, only the newer one may. */
export class StateLease {
  #isHeld = true;

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** A newer agent reads the state now. What this agent learns from now on stays in memory. */
  give(): void {
    this.#isHeld = false;
  }

  /** The newer agent has ended. This one still has all in memory, and writes it again. */
  take(): void {
    this.#isHeld = true;
  }
}
