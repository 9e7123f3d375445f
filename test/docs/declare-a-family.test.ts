import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ServedNode } from '../e2e/served-node.ts';
import { PROGRAM } from '../support/program.ts';
import { DEADLINE_MS } from '../support/until.ts';

const text = readFileSync('docs/declare-a-family.md', 'utf8');
const blocks = (language: string): readonly string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, body]) => body as string);
const [declaration = '', config = '', commands = ''] = blocks('yaml');
const [held = '', failed = ''] = blocks('text');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-tutorial-'));
  writeFileSync(join(directory, 'acme.yaml'), declaration);
  mkdirSync(join(directory, 'bin'));
  const program = join(directory, 'bin/device-agent');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${resolve(PROGRAM)}' "$@"\n`);
  chmodSync(program, 0o755);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Stdout and stderr of one command line in the tutorial's directory. */
function run(line: string): string {
  const env = { ...process.env, PATH: `${directory}/bin:${process.env.PATH}` };
  const { stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: directory, encoding: 'utf8', env, timeout: DEADLINE_MS });
  return stdout + stderr;
}

describe('docs/declare-a-family.md', () => {
  it('has a declaration of 30 lines', () => {
    expect(declaration.trimEnd().split('\n').length).toBeLessThanOrEqual(30);
  });

  it('shows what its commands print', () => {
    for (const script of blocks('sh')) expect(run(script)).toBe('');
    for (const block of blocks('console')) {
      const [, ...steps] = `\n${block}`.split(/\n\$ /);
      for (const step of steps) {
        const [line = '', ...printed] = step.split('\n');
        expect(run(line).trimEnd(), line).toBe(printed.join('\n').trimEnd());
      }
    }
  });

  it('has an example of a program that is valid', () => {
    writeFileSync(join(directory, 'with-program.yaml'), `${declaration}${commands}`);
    mkdirSync(join(directory, 'node/commands'), { recursive: true });
    writeFileSync(join(directory, 'node/commands/ls.txt'), '{"cards": []}');
    expect(run('device-agent family check with-program.yaml --root=node')).toContain('2 devices, list complete');
  });
});

describe('the invented card on a node', () => {
  const card = (n: number): Readonly<Record<string, string>> => {
    const files = {
      serial: `X1A${n}`,
      model: 'X1',
      fw_version: '1.2.0',
      state: 'ok',
      busy_percent: '37',
      [`hwmon/hwmon${n}/temp1_input`]: '45300',
      'queue0/jobs': '120',
      'queue1/jobs': '17',
    };
    return Object.fromEntries(Object.entries(files).map(([name, content]) => [`sys/class/acme/acme${n}/${name}`, `${content}\n`]));
  };
  const simulate = () => ({ files: { ...card(0), ...card(1) }, links: {}, resources: [] });
  let node: ServedNode;
  beforeAll(async () => {
    mkdirSync(join(directory, 'served'));
    writeFileSync(join(directory, 'served/acme.yaml'), declaration);
    node = new ServedNode({
      family: { name: 'acme', simulation: { sizes: [], faults: [], workloads: [], simulate } },
      counts: {},
      resource: 'acme.example/card',
      config: parse(config) as object,
      flags: [`--family.dir=${directory}/served`],
    });
    await node.start();
  });
  afterAll(async () => await node.stop());

  it('has metrics with pods, a condition, is Unhealthy at the kubelet, and is on the page', async () => {
    const agent = node.agent;
    if (agent === undefined) throw new Error('no agent');
    await expect.poll(() => node.list()).toEqual({ X1A0: 'Healthy', X1A1: 'Healthy' });
    const grant = await node.manager.allocate({ podUid: 'u-1', container: 'main', resource: 'acme.example/card', count: 1 });
    expect(grant.response.devices.map(({ hostPath }) => hostPath)).toEqual([`/dev/acme${grant.deviceIds[0]?.at(-1)}`]);
    const holder = (name: string, resource: string, id: string) => ({
      namespace: 'ml',
      name,
      uid: name,
      containers: [{ name: 'main', devices: [{ resource, id }] }],
    });
    node.kubelet.admitPod(holder('train-0', 'acme.example/card', 'X1A0'));
    // The vendor's own plugin gave the other card; its ids are bare numbers.
    node.kubelet.admitPod(holder('other', 'acme.example/x1', '1'));
    const isIn = (page: string, block: string): boolean =>
      block
        .trimEnd()
        .split('\n')
        .every((line) => page.split('\n').includes(line));
    await agent.until('the series of the pod', (page) => isIn(page, held));
    await agent.until('the pod of the other plugin', (page) =>
      /^container_device_allocation\{.*pod="other".*device="X1A1",device_id="1"/m.test(page),
    );
    node.change({ 'acme0/state': 'failed' });
    await agent.until('the condition', (page) => isIn(page, failed));
    await expect.poll(() => node.list()).toEqual({ X1A0: 'Unhealthy', X1A1: 'Healthy' });
    const page = await (await fetch(`${agent.url}/devices/acme/X1A0`)).text();
    expect(page).toContain('CardFailed');
    expect(await agent.metrics()).toMatch(/^device_agent_probe_runs_total\{family="acme"\} [1-9]/m);
    node.change({ 'acme0/state': 'ok' });
    await agent.until('the end of the condition', (text) => text.includes('device_health{device="X1A0",state="healthy"} 1'));
  });
});
