import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../support/serve.ts';

const hasPrlimit = existsSync('/usr/bin/prlimit');

let agent: ServedAgent | undefined;
/** Over one connection, for which no descriptor is needed any more. */
const connection = new Agent({ keepAlive: true, maxSockets: 1 });
afterEach(async () => {
  connection.destroy();
  await agent?.stop('SIGKILL');
});

const status = (path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(`${agent?.url}${path}`, { agent: connection }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
    }).once('error', reject);
  });

it.skipIf(!hasPrlimit)(
  'the pages come once there are descriptors again, though there were none when they were first asked for',
  async () => {
    const probes = ['nvidia', 'infiniband', 'fpga'].map((family) => `--no-probe.${family}`);
    agent = await serve([...probes, '--podresources.socket=/absent.sock', '--podresources.checkpoint=', '--state.file=']);
    const pid = String(agent.child.pid);
    expect(await status('/metrics')).toBe(200);
    const open = readdirSync(`/proc/${pid}/fd`).map(Number);
    const firstFree = open.findIndex((_, at) => !open.includes(at));
    execFileSync('prlimit', ['--pid', pid, `--nofile=${firstFree < 0 ? open.length : firstFree}:`]);
    expect([await status('/api/v1/status'), await status('/')]).toEqual([500, 500]);
    execFileSync('prlimit', ['--pid', pid, '--nofile=1024:']);
    expect([await status('/api/v1/status'), await status('/')]).toEqual([200, 200]);
  },
);
