import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { Ask } from '../../src/cli/agent-api.ts';
import { checkRunningAgent } from '../../src/cli/doctor/agent-checks.ts';
import type { CheckContext, CheckResult } from '../../src/cli/doctor/check.ts';
import { checkFamilies } from '../../src/cli/doctor/family-checks.ts';
import { checkPodResources } from '../../src/cli/doctor/kubelet-checks.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { run } from '../cli/command-line.ts';
import { toldBoard } from '../cli/publish/on-clock.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const WAIT = { interval: 20 } as const;
const load = familyLoaders.infiniband;
if (load === undefined) throw new Error('there is no infiniband family');
const infiniband = await load();

const RESOURCE = 'example.com/hca';
const CONFIG = {
  plugin: { resources: [{ resource: RESOURCE, select: { family: 'infiniband', kind: 'pf' } }] },
  health: { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } },
  probe: { infiniband: { 'expected-ports': ['mlx5_1:1'] } },
};
const down = { 'mlx5_1/ports/1/state': '1: DOWN', 'mlx5_1/ports/1/phys_state': '2: Polling' };

let node: ServedNode | undefined;
afterEach(async () => {
  await node?.stop();
  node = undefined;
});

async function findings(of: ServedNode, address: string): Promise<readonly CheckResult[]> {
  const { stdout, stderr } = await run(['doctor', '--output=json', ...of.flags(), `--web.listen-address=${address}`]);
  expect(stderr).toBe('');
  const { ok, checks } = JSON.parse(stdout) as { readonly ok: boolean; readonly checks: readonly CheckResult[] };
  const found = checks.filter(({ status }) => status === 'finding');
  expect(ok).toBe(found.length === 0);
  return found;
}

describe('doctor beside a running agent', () => {
  it('has one finding for each problem of a probe and of the kubelet, which the agent tells too', async () => {
    const ask: Ask = async (path) => ({
      answer: {
        status: 200,
        body:
          path === '/api/v1/status'
            ? {
                probes: [{ family: 'infiniband', succeeded: true, problems: [{ code: 'nodes-hidden', message: 'listing fails' }] }],
                kubelet: { problem: { reason: 'refused', message: 'nobody listens' } },
              }
            : toldBoard([]),
      } as never,
    });
    const options = { socket: join(tmpdir(), 'kubelet.sock'), sysfs: tmpdir() };
    const configuration = { section: () => options, isOn: () => true } as never;
    const context: CheckContext = {
      configuration,
      families: [infiniband],
      ask,
      askProblem: () => undefined,
      collect: () => Promise.reject(),
    };
    const results = await Promise.all([checkPodResources, checkFamilies, checkRunningAgent].map((check) => check(context)));
    expect(results.flat().map(({ name, status }) => `${status} ${name}`)).toEqual([
      'ok podresources-directory',
      'finding podresources-socket',
      'finding probe.infiniband',
      'ok running-agent',
    ]);
  });

  it('has no finding on a healthy node, and names an unhealthy device and a standing problem', async () => {
    node = new ServedNode({ family: infiniband, counts: { infiniband: 2 }, resource: RESOURCE, config: CONFIG });
    for (const path of ['proc/stat', 'dev/null', 'dev/kmsg']) writeFileSync(join(node.root, path), '');
    const agent = await node.start();
    const list = (): object => node?.list() ?? {};
    await expect.poll(list, WAIT).toEqual({ mlx5_0: 'Healthy', mlx5_1: 'Healthy' });
    const address = new URL(agent.url).host;
    expect(await findings(node, address)).toEqual([]);

    node.change(down);
    await expect.poll(list, WAIT).toEqual({ mlx5_0: 'Healthy', mlx5_1: 'Unhealthy' });
    const [sick] = await findings(node, address);
    expect(sick).toMatchObject({
      name: 'devices',
      detail: 'infiniband/mlx5_1 is unhealthy',
      cause: expect.stringMatching(/^PortDown\/1: /),
    });

    writeFileSync(join(node.root, 'config.yaml'), 'log: {level: loud}');
    agent.child.kill('SIGHUP');
    await agent.until('it is refused', (page) => seriesValue(page, 'device_agent_config_last_reload_successful') === 0);
    // The doctor cannot read that file either, so it gets a valid one.
    const valid = join(node.root, 'valid.yaml');
    writeFileSync(valid, stringify(CONFIG));
    const flags = [...node.flags(), `--config.file=${valid}`, `--web.listen-address=${address}`];
    const { stdout, status } = await run(['doctor', ...flags]);
    expect(status).toBe(1);
    expect(stdout).toMatch(/FINDING {2}running-agent +configuration: .*loud/);
    expect(stdout).not.toContain('No findings');

    await agent.stop();
    expect((await run(['doctor', ...flags])).stdout, 'one reading shows it as well').toMatch(
      /FINDING {2}devices +infiniband\/mlx5_1 is unhealthy/,
    );
  });
});
