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
