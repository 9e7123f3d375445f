import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ServedAgent, serve } from '../support/serve.ts';

let agent: ServedAgent;
beforeAll(async () => {
  agent = await serve([], 'demo');
});
afterAll(() => agent.stop());

it('opens no inspector when it gets SIGUSR1, and goes on', async () => {
  for (let time = 0; time < 3; time += 1) {
    agent.child.kill('SIGUSR1');
    expect(await agent.metrics()).toContain('device_agent_build_info');
  }
  expect(agent.log()).not.toContain('Debugger listening');
  expect(agent.child.exitCode).toBeNull();
});
