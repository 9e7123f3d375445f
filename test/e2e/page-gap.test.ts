import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { family as nvme } from '../../src/probes/nvme/index.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const DRIVE = '0050:10:00.0';
const PAUSE_MS = 8_000;
/** No part of the strip is narrower than this. */
const LEAST_S = 4;

/** The pauses alone take 12 seconds, so both tests run at the same time. */
vi.setConfig({ testTimeout: 60_000 });

/** Parts of the strip, in seconds before now. */
async function strip(url: string): Promise<readonly { readonly state: string; readonly fromS: number; readonly untilS: number }[]> {
  const page = await (await fetch(`${url}/devices/nvme/${encodeURIComponent(DRIVE)}`)).text();
  const [svg = ''] = /<svg class="strip".*?<\/svg>/s.exec(page) ?? [];
  const [, from, until] = /data-from="(\d+)" data-until="(\d+)"/.exec(svg) ?? [];
  const wholeS = (Number(until) - Number(from)) / 1_000;
  return [...svg.matchAll(/<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%"/g)].map(([, state = '', x, width]) => ({
    state,
    fromS: (1 - Number(x) / 100) * wholeS,
    untilS: (1 - (Number(x) + Number(width)) / 100) * wholeS,
  }));
}

it.concurrent.for(['SIGTERM', 'SIGKILL'] as const)(
  'the time in which no agent ran is empty in the strip of a device, after %s',
  async (signal, { onTestFinished }) => {
    const node = new ServedNode({
      family: nvme,
      counts: { nvme: 1 },
      resource: 'example.com/nvme',
      config: {},
      flags: ['--refresh.interval=200ms'],
    });
    onTestFinished(() => node.stop());
    const isRead = (page: string): boolean => seriesValue(page, 'device_healthy', { device: DRIVE }) === 1;
    await node.start();
    await node.agent?.until('a verdict', isRead);
    await sleep(LEAST_S * 1_000);
    const first = await strip(node.agent?.url ?? '');
    expect(first, 'before the agent ran, nothing is known').toHaveLength(1);
    expect(first[0]?.fromS).toBeLessThan(60);

    await node.agent?.stop(signal);
    const stoppedAtMs = Date.now();
    await sleep(PAUSE_MS);
    const startedAtMs = Date.now();
    const agent = await node.startAgent();
    await agent.until('a verdict', isRead);
    const parts = await strip(agent.url);
    const [stoppedS, startedS] = [stoppedAtMs, startedAtMs].map((time) => (Date.now() - time) / 1_000) as [number, number];
    expect(parts.at(-1)?.untilS, 'now').toBeLessThanOrEqual(0.1);
    const inGap = parts.filter(({ fromS, untilS }) => untilS < stoppedS - LEAST_S && fromS > startedS + 1);
    expect(inGap, JSON.stringify(parts)).toEqual([]);
    if (signal === 'SIGTERM') expect(parts, 'what the earlier agent saw is there').toHaveLength(2);
  },
);
