import type { Clock } from '../host/clock.ts';

/** Lets a bounded number of answers be under way. */
export interface Admission {
  /** Gives the way to leave again, or undefined when no place became free in time. */
  enter(): Promise<(() => void) | undefined>;
}

/** A burst waits its turn instead of being refused; whoever waits longer than `patienceMs` is. Limit 0: no limit. */
export function createAdmission(limit: number, patienceMs: number, clock: Clock): Admission {
  const waiting = new Set<() => void>();
  let inside = 0;

  const leaver = (): (() => void) => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      inside -= 1;
      const [next] = waiting;
      next?.();
    };
  };
  const admit = (): (() => void) => {
    inside += 1;
    return leaver();
  };

  return {
    enter() {
      if (limit === 0 || inside < limit) return Promise.resolve(admit());
      return new Promise((resolve) => {
        const proceed = (): void => {
          cancel();
          waiting.delete(proceed);
          resolve(admit());
        };
        const cancel = clock.after(patienceMs, () => {
          waiting.delete(proceed);
          resolve(undefined);
        });
        waiting.add(proceed);
      });
    },
  };
}
