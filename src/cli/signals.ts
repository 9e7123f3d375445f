import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Resolves with the first signal that asks to stop. From the call on such signals no longer end the process at once, so
 * that whatever was begun can be put away; as PID 1 they would not even do that.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of SIGNALS) process.on(signal, () => resolve(signal));
  });
}

/**
 * For PID 1, as in a container: the kernel keeps signals from it that it does not handle. Until somebody waits for them by
 * {@link stopSignal} they end it as they end any other process.
 */
export function endBySignals(): void {
  if (process.pid !== 1) return;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}
