// Project: programs. It waits two minutes of real time.
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../cli/command-line.ts';
import { type ServedAgent, serve } from '../support/serve.ts';

const GPU = 'GPU-5e1f0000-0000-4000-8000-000000000001';
let agent: ServedAgent;
/** Labels of the container that holds the GPU. */
let holder = '';
let page = '';
let adapters: readonly string[] = [];

/** A node whose agent needs half a minute of work, and half a minute of silence. */
beforeAll(async () => {
  const quick = ['--refresh.interval=500ms', '--stall.after=30s', '--stall.learn=30s'];
  agent = await serve([...quick, '--sim.story=off', '--sim.pod-change=0s', '--sim.devices=nvidia=2,infiniband=2,infiniband.vf=0'], 'demo');
  page = await agent.until('the holder of the GPU', (text) => text.includes(`device="${GPU}",device_id="${GPU}"`));
  const [, pod = '', container = '', namespace = ''] =
    new RegExp(
      `^container_device_allocation\\{(?=[^}]*device="${GPU}")(?=[^}]*pod="([^"]+)")(?=[^}]*container="([^"]+)")(?=[^}]*namespace="([^"]+)")`,
      'm',
    ).exec(page) ?? [];
  holder = `{namespace="${namespace}",pod="${pod}",container="${container}"}`;
  adapters = [...page.matchAll(new RegExp(`^container_device_allocation\\{(?=[^}]*pod="${pod}")[^}]*device="(mlx5_\\d+)"`, 'gm'))].map(
    ([, name]) => name as string,
  );
});
afterAll(() => agent?.stop('SIGINT'));

const fault = (...words: readonly string[]) => run(['demo', 'fault', ...words, `--demo=${agent.child.pid}`], { TMPDIR: tmpdir() });
const value = (name: string) => (text: string) => text.match(new RegExp(`^${name}${holder.replace(/[{}]/g, '\\$&')} (\\S+)`, 'm'))?.[1];

describe('a container whose job hangs', () => {
  it('is told by metric, condition, page and incident, and withholds nothing', async () => {
    expect(adapters).toHaveLength(1);
    await agent.until('a container that works', (text) => value('container_device_waiting')(text) === '0');
    // What it usually moves is known after half a minute of work.
    const [, pod = ''] = /pod="([^"]+)"/.exec(holder) ?? [];
    const heldFor = new RegExp(`^container_device_allocated_seconds_total\\{(?=[^}]*device="${GPU}")[^}]*pod="${pod}"[^}]*\\} (\\S+)`, 'm');
    await agent.until('a minute of work', (text) => Number(heldFor.exec(text)?.[1]) > 60);
    expect(await fault('spin', GPU)).toMatchObject({ status: 0 });
    expect(await fault('silent', adapters[0] as string)).toMatchObject({ status: 0 });
    const waiting = await agent.until('a container that waits', (text) => value('container_device_waiting')(text) === '1');
    expect(Number(value('container_device_last_progress_timestamp_seconds')(waiting))).toBeLessThan(Date.now() / 1_000 - 25);
    expect(waiting).toMatch(
      new RegExp(
        `^device_health_condition\\{[^}]*device="${GPU}"[^}]*condition="(?:BusyWaiting|Stalled)"|condition="(?:BusyWaiting|Stalled)"[^}]*device="${GPU}"`,
        'm',
      ),
    );
    expect(waiting).toContain(`device_health{device="${GPU}",state="healthy"} 1`);
    const [, namespace] = /namespace="([^"]+)"/.exec(holder) ?? [];
    const shown = await (await fetch(`${agent.url}/pods/${namespace}/${pod}`)).text();
    expect(shown).toMatch(/(?:waits: busy, but nothing moves|stalled: busy, but its steps have ended), last progress \d+ (?:s|min) ago/);
    const { incidents } = (await (await fetch(`${agent.url}/api/incidents`)).json()) as {
      incidents: { device: string; conditions: string[] }[];
    };
    expect(incidents).toContainEqual(
      expect.objectContaining({ device: `nvidia/${GPU}`, conditions: [expect.stringMatching(/^(?:BusyWaiting|Stalled)$/)] }),
    );
  });

  it('does not wait any more when it goes on', async () => {
    expect(await run(['demo', 'fault', 'clear', 'spin', `--demo=${agent.child.pid}`], { TMPDIR: tmpdir() })).toMatchObject({ status: 0 });
    await agent.until('a container that works', (text) => value('container_device_waiting')(text) === '0');
  });
});
