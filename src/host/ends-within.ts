import type { Clock } from './clock.ts';

/** Whether a promise settles within `limitMs`, fulfilled or rejected. */
export async function endsWithin(promise: Promise<unknown>, limitMs: number, clock: Clock): Promise<boolean> {
  let cancel = (): void => {};
  const limit = new Promise<false>((resolve) => {
    cancel = clock.after(limitMs, () => resolve(false));
  });
  const ended = promise.then(
    () => true,
    () => true,
  );
  const isInTime = await Promise.race([ended, limit]);
  cancel();
  return isInTime;
}
