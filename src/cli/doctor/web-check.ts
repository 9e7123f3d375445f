import { X509Certificate } from 'node:crypto';
import { UserError } from '../../errors.ts';
import { createServer } from '../../host/node-http.ts';
import { listen } from '../../server/http/listen.ts';
import { webOptions } from '../../server/options.ts';
import { askAddress, REFUSAL_TEXTS } from '../agent-api.ts';
import { webConfigOf } from '../settings.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

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
    const { answer, refusal } = await askAddress(configuration, '/healthz');
    // An agent that does not work says so by another status, and is still the user of the address.
    const isAgent = answer?.status === 200 || (await askAddress(configuration, '/api/v1/status')).answer?.agent !== undefined;
    if (isAgent) return [ok(name, `${text} is in use by a running agent`)];
    if (refusal === undefined) return [finding(name, error.message, 'Metrics cannot be served there.', error.remedy)];
    const { detail, remedy } = REFUSAL_TEXTS[refusal];
    return [finding(name, `${text} is in use, and its user cannot be asked: ${detail}`, 'It may be a running agent or not.', remedy)];
  } finally {
    server.close();
  }
}

/** Reads the web configuration file and the files that it names. */
export async function checkWebConfig({ configuration }: CheckContext): Promise<CheckResult[]> {
  const name = 'web-config';
  const source = webConfigOf(configuration);
  if (source === undefined) return [skipped(name, 'no --web.config.file: every client that reaches the port may read')];
  const { access, problem } = await source.read();
  if (problem !== undefined) return [finding(name, problem.message, 'The agent does not start with it.', problem.remedy)];
  const { tls, users } = access;
  const passwords = users.size === 0 ? 'no password' : `passwords of ${users.size} users`;
  if (tls === undefined) return [ok(name, `${source.file}: plain HTTP, ${passwords}`)];
  const until = new X509Certificate(String(tls.context.cert)).validTo;
  if (Date.parse(until) < Date.now()) {
    return [
      finding(name, `${source.file}: the certificate ended ${until}`, 'Clients refuse it.', 'Renew the certificate; no restart is needed.'),
    ];
  }
  return [ok(name, `${source.file}: TLS until ${until}, client certificates: ${tls.clientAuth}, ${passwords}`)];
}
