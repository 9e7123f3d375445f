import { createServer } from 'node:http';
import { UserError } from '../../errors.ts';
import { listen } from '../../server/http/listen.ts';
import { webOptions } from '../../server/options.ts';
import { askAgent } from '../agent-api.ts';
import { type CheckContext, type CheckResult, finding, ok } from './check.ts';

/** Binds the address briefly. An address that a running agent uses is also ok. */
export async function checkListenAddress({ configuration }: CheckContext): Promise<CheckResult[]> {
  const name = 'listen-address';
  const text = configuration.section('web', webOptions)['listen-address'];
  const server = createServer();
  try {
    await listen(server, text);
    return [ok(name, `${text} is free`)];
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if ((await askAgent(text, '/healthz'))?.status === 200) return [ok(name, `${text} is in use by a running agent`)];
    return [finding(name, error.message, 'Metrics cannot be served there.', error.remedy)];
  } finally {
    server.close();
  }
}
