import { describe, expect, it } from 'vitest';
import { OPEN_ACCESS, type RateLimit } from '../../../src/server/access/access.ts';
import { ManualClock } from '../../kubelet/support/manual-clock.ts';
import { ask, start } from '../asking.ts';

async function limited(rateLimit: RateLimit) {
  const clock = new ManualClock();
  const access = { current: { ...OPEN_ACCESS, rateLimit }, subscribe: () => undefined };
  const { url } = await start({ parts: { access, clock } });
  const statuses = async (count: number, path = '/metrics'): Promise<readonly number[]> => {
    const found: number[] = [];
    for (let n = 0; n < count; n += 1) found.push((await ask(url + path)).status);
    return found;
  };
  return { url, clock, access, statuses };
}

describe('a server with a limit of requests', () => {
  it('admits what is saved up, then one for each interval, and never more than the burst at once', async () => {
    const { url, clock, statuses } = await limited({ intervalMs: 2_000, burst: 2 });
    expect(await statuses(3)).toEqual([200, 200, 429]);
    const { headers, body } = await ask(`${url}/api/v1/devices`);
    expect(headers['retry-after']).toBe('2');
    expect(JSON.parse(body.toString())).toMatchObject({ error: { code: 'rate-limited' } });
    clock.advance(1_500);
    expect((await ask(`${url}/metrics`)).headers['retry-after']).toBe('1');
    clock.advance(500);
    expect(await statuses(2)).toEqual([200, 429]);
    clock.advance(60_000);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  it('answers nothing without a burst, and says no time to come again', async () => {
    const { url, clock } = await limited({ intervalMs: 1, burst: 0 });
    clock.advance(60_000);
    const { status, headers } = await ask(`${url}/metrics`);
    expect([status, headers['retry-after']]).toEqual([429, undefined]);
  });

  it.each(['/healthz', '/readyz', '/-/healthy', '/-/ready'])('answers the kubelet always at %s', async (path) => {
    const { statuses } = await limited({ intervalMs: 60_000, burst: 1 });
    expect(await statuses(3, path)).toEqual([200, 200, 200]);
    expect(await statuses(2)).toEqual([200, 429]);
  });

  it('takes another limit at once, and keeps the count when something else changed', async () => {
    const { access, statuses } = await limited({ intervalMs: 60_000, burst: 1 });
    expect(await statuses(2)).toEqual([200, 429]);
    access.current = { ...OPEN_ACCESS, rateLimit: { intervalMs: 60_000, burst: 1 } };
    expect(await statuses(1)).toEqual([429]);
    access.current = { ...OPEN_ACCESS, rateLimit: { intervalMs: 60_000, burst: 2 } };
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });
});
