import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { family } from '../../src/probes/infiniband/index.ts';
import { withUsageTimes } from '../support/constants.ts';
import { isInstalled } from '../support/installed.ts';
import { type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { ServedNode } from './served-node.ts';

/**
 * Slows everything down. With 15 the scrape interval is 15 s, the refresh interval 2 s, and pods live 5 s, 20 s and 5 min:
 * `USAGE_PACE=15 npx vitest run test/e2e/usage-truth.test.ts` takes 11 minutes.
 */
const PACE = Number(process.env.USAGE_PACE ?? '1');
const ms = (atPace15: number): number => Math.round((atPace15 / 15) * PACE * 1_000);
const SCRAPE_MS = ms(15);
const REFRESH_MS = ms(2);
const LINGER_MS = ms(180);
const LIVES_MS = [ms(5), ms(20), ms(300)] as const;
const RESOURCE = 'nvidia.com/ib_pf';
const HCAS = 6;
/** A busy machine delays a timer and an answer, in seconds. */
const SLACK = PACE === 1 ? 0.6 : 0.3;

const installed = isInstalled('prometheus');
const skipped = installed ? '' : ' (skipped: prometheus is not installed)';

interface Life {
  readonly pod: string;
  readonly seconds: number;
}

describe.skipIf(!installed)(`increase() of allocated seconds in a real Prometheus${skipped}`, () => {
  const node = new ServedNode({
    family,
    counts: { infiniband: HCAS },
    resource: RESOURCE,
    config: {},
    flags: [`--refresh.interval=${REFRESH_MS}ms`],
    env: withUsageTimes({ 'zero-for': ms(60), linger: LINGER_MS }),
  });
  let prometheus: RunningPrometheus;

  beforeAll(async () => {
    const agent = await node.start();
    const targets = [{ targets: [new URL(agent.url).host] }];
    const job = {
      job_name: 'agent',
      scrape_interval: `${SCRAPE_MS}ms`,
      scrape_timeout: `${Math.min(SCRAPE_MS, 10_000)}ms`,
      honor_labels: true,
    };
    prometheus = await startPrometheus({ scrape_configs: [{ ...job, static_configs: targets }] });
  });

  afterAll(async () => {
    await prometheus?.stop();
    await node.stop();
  });

  /** Runs one pod on an HCA of its own for a time. */
  async function live(hca: number, lifeMs: number, delayMs: number): Promise<Life> {
    await sleep(delayMs);
    const pod = `lived-${lifeMs}-${hca}`;
    const devices = [{ resource: RESOURCE, id: `mlx5_${hca}` }];
    const startedMs = performance.now();
    node.kubelet.admitPod({ namespace: 'team', name: pod, uid: `uid-${pod}`, containers: [{ name: 'main', devices }] });
    await sleep(lifeMs);
    node.kubelet.removePod('team', pod);
    return { pod, seconds: (performance.now() - startedMs) / 1_000 };
  }

  /**
   * Growth from the first to the last sample. At the time of the last sample, `increase()` extrapolates nothing: the series begins with 0
   * and ends at the end of the range.
   */
  async function increaseOf(pod: string): Promise<number> {
    const series = `container_device_allocated_seconds_total{pod="${pod}"}`;
    const samples = (await prometheus.ask(`/query?query=${encodeURIComponent(`${series}[1h]`)}`)) as {
      readonly data?: { readonly result: readonly { readonly values: readonly (readonly [number, string])[] }[] };
    };
    const lastAt = samples.data?.result[0]?.values.at(-1)?.[0];
    if (lastAt === undefined) throw new Error(`Prometheus has no sample of ${pod}`);
    const grown = await prometheus.query(`increase(${series}[1h] @ ${lastAt})`);
    return Number(grown[0]?.value[1]);
  }

  it('equals the life of each pod within one refresh interval', async () => {
    await expect.poll(() => prometheus.targets()).toEqual(['up']);
    const lives = await Promise.all(
      LIVES_MS.flatMap((lifeMs, n) => [
        live(2 * n, lifeMs, 0),
        // Another phase of refresh and scrape.
        live(2 * n + 1, lifeMs, REFRESH_MS * 1.6 + SCRAPE_MS * 0.3),
      ]),
    );
    // The last value is exported for the whole linger time.
    await sleep(LINGER_MS + 2 * SCRAPE_MS + ms(60));
    const errors: Record<string, number> = {};
    for (const { pod, seconds } of lives) errors[pod] = (await increaseOf(pod)) - seconds;
    if (PACE !== 1) process.stderr.write(`${JSON.stringify(errors)}\n`);
    for (const [pod, error] of Object.entries(errors)) expect(Math.abs(error), pod).toBeLessThan(REFRESH_MS / 1_000 + SLACK);
  });
});
