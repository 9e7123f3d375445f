import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { AgentOnStockNode, attributed, HCA } from './support/agent-on-stock-node.ts';
import { KUBELET, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();
if (why !== undefined) process.stderr.write(`skipped: the capture of a stock kubelet, ${why}\n`);

const WAIT = { interval: 50 };
const run = promisify(execFile);
/** The built agent, as a command that ends. */
const command = async (...words: string[]): Promise<string> => (await run(process.execPath, ['dist/cli/main.js', ...words])).stdout;

describe.skipIf(why !== undefined)('a capture of the node of a stock kubelet', () => {
  let on: AgentOnStockNode;
  let replay: ServedAgent | undefined;

  beforeAll(async () => {
    on = new AgentOnStockNode(KUBELET);
    await on.node.start();
  });

  afterAll(async () => {
    await replay?.stop();
    await on?.close();
  });

  it('gives the same metrics in a replay, and another machine serves it with other names', async () => {
    const agent = await on.startAgent();
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    on.node.add({ name: 'secretive', containers: [{ name: 'main', limits: { [HCA]: 2 } }] });
    await agent.until('attributed', (page) => attributed(page, 'secretive').length === 2);
    const held = (await on.listed('secretive')) as string[];

    const archive = join(on.machine.root, 'node.json.gz');
    const flags = [...on.machine.flags(), ...on.node.flags(), `--config.file=${on.machine.root}/config.json`, '--refresh.interval=1s'];
    expect(await command('capture', '-o', archive, ...flags)).toContain('two reads, names replaced');
    expect(await command('replay', archive)).toBe('no difference\n');
    const bytes = gunzipSync(readFileSync(archive)).toString('latin1');
    expect(bytes).toContain(HCA);
    expect(bytes).not.toContain('secretive');

    replay = await serve(['--replay', archive], 'demo');
    expect(new URL(replay.url).port).not.toBe(new URL(agent.url).port);
    const isHeld = (text: string, device: string): boolean =>
      seriesValue(text, 'container_device_allocation', { device, resource: HCA }) === 1;
    const page = await replay.until('joined', (text) => held.every((device) => isHeld(text, device)));
    expect(page).toMatch(/^container_device_allocation\{namespace="ns-[0-9a-f]{10}",pod="pod-[0-9a-f]{10}",container="ctr-[0-9a-f]{10}"/m);
    expect(seriesValue(page, 'device_agent_kubelet_allocatable_devices', { resource: HCA })).toBe(4);
  });
});
