import { createServer, get } from 'node:http';
import { UserError } from '../../errors.ts';
import { listen, parseListenAddress } from '../../server/listen.ts';
import { webOptions } from '../../server/options.ts';
import { type CheckContext, type CheckResult, finding, ok } from './check.ts';

const ANSWER_MS = 2_000;

/** Binds the address for a moment; in use by a running agent is as good as free. */
export async function checkListenAddress({ configuration }: CheckContext): Promise<CheckResult[]> {
  const name = 'listen-address';
  const text = configuration.section('web', webOptions)['listen-address'];
  const server = createServer();
  try {
    await listen(server, text);
    return [ok(name, `${text} is free`)];
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (await answersHealth(text)) return [ok(name, `${text} is in use by a running agent`)];
    return [finding(name, error.message, 'Metrics cannot be served there.', error.remedy)];
  } finally {
    server.close();
  }
}

function answersHealth(text: string): Promise<boolean> {
  const address = parseListenAddress(text);
  if (address === undefined) return Promise.resolve(false);
  const target = 'path' in address ? { socketPath: address.path } : { host: address.host ?? 'localhost', port: address.port };
  return new Promise((resolve) => {
    const request = get({ ...target, path: '/healthz', timeout: ANSWER_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
