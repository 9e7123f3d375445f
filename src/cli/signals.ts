import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
type StopSignal = (typeof SIGNALS)[number];

/**
 * Resolves with the first stop signal. After this call such signals no longer end the process immediately, so that the caller can clean
 * up. Without a handler, the kernel does not even deliver them to PID 1.
 */
export function stopSignal(signals: readonly StopSignal[] = SIGNALS): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve(signal));
  });
}

/**
 * The kernel does not deliver unhandled signals to PID 1, as in a container. Until {@link stopSignal} is called, this lets signals end
 * PID 1 like any other process.
 */
export function endBySignals(): void {
  if (process.pid !== 1) return;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

/** By default, SIGUSR1 opens Node's inspector, through which every local user can run code in this process. */
export function ignoreInspectorSignal(): void {
  process.on('SIGUSR1', () => {});
}
