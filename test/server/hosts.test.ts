import { describe, expect, it } from 'vitest';
import { ask, start } from './asking.ts';

const PATHS = ['/metrics', '/', '/api/v1/devices', '/api/v1/status', '/readme'];

describe('a request', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.1:9835',
    '10.0.0.7:9835',
    '[::1]',
    '[fd00::7]:9835',
    'localhost',
    'LocalHost:9835',
    'localhost.',
    'node-1:9835',
    'agent-x7k2p',
  ])('that addresses the agent as %s is answered', async (host) => {
    const { url } = await start({ parts: { hostNames: ['node-1', 'agent-x7k2p'] } });
    expect((await ask(`${url}/metrics`, { host })).status).toBe(200);
  });

  it.each([
    'evil.example',
    'evil.example:9835',
    'node-1.evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'node-12',
    '[::1',
    'x]',
  ])('that addresses the agent as %s learns nothing, and what to do', async (host) => {
    const { url } = await start({ parts: { hostNames: ['node-1'] } });
    for (const path of PATHS) {
      const { status, body } = await ask(url + path, { host });
      expect(status).toBe(421);
      expect(body.toString()).toContain('--web.allowed-hosts');
      expect(body.toString()).not.toContain('mlx5');
    }
    expect((await ask(`${url}/healthz`, { host })).status, 'which says nothing of devices').toBe(200);
  });

  it('may use the names that the option lists, or any name', async () => {
    const named = await start({ options: { 'allowed-hosts': ['Agent.Monitoring.svc'] } });
    expect((await ask(`${named.url}/metrics`, { host: 'agent.monitoring.svc:9835' })).status).toBe(200);
    expect((await ask(`${named.url}/metrics`, { host: 'other.monitoring.svc' })).status).toBe(421);
    const any = await start({ options: { 'allowed-hosts': ['*'] } });
    expect((await ask(`${any.url}/metrics`, { host: 'evil.example' })).status).toBe(200);
  });
});

describe('the liveness check', () => {
  it('fails with the reason while the agent cannot do its work', async () => {
    let fault: string | undefined;
    const { url } = await start({ parts: { fault: () => fault } });
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    fault = 'There was no new snapshot for 90 s.';
    const { status, body } = await ask(`${url}/-/healthy`);
    expect([status, body.toString()]).toEqual([503, `${fault}\n`]);
  });
});
