import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Certificates } from '../support/certificates.ts';
import { isInstalled } from '../support/installed.ts';
import { PROGRAM } from '../support/program.ts';
import { plainScrape, type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';

const hasOpenssl = isInstalled('openssl', 'version');
const hasPrometheus = isInstalled('prometheus');
const missing = hasOpenssl ? 'prometheus is not installed' : 'openssl is not installed';

let certificates: Certificates;
let root: string;
const agents: ServedAgent[] = [];

beforeAll(() => {
  if (!hasOpenssl) return;
  root = mkdtempSync(join(tmpdir(), 'device-agent-access-'));
  certificates = new Certificates();
  certificates.issue('server');
  certificates.issue('client');
  certificates.issue('expired', { isExpired: true });
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop('SIGKILL')));
  certificates?.remove();
  if (root !== undefined) rmSync(root, { recursive: true, force: true });
});

/** The built agent, on a machine without devices. */
async function startWith(name: string, lines: readonly string[]): Promise<{ agent: ServedAgent; file: string }> {
  const file = certificates.path(`${name}.yml`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const paths = ['sysfs', 'procfs', 'dev'].map((path) => `--path.${path}=${root}`);
  const agent = await serve([
    ...paths,
    `--podresources.socket=${root}/none.sock`,
    `--state.file=${root}/${name}.json`,
    `--web.config.file=${file}`,
  ]);
  agents.push(agent);
  return { agent, file };
}

const TLS = ['tls_server_config:', '  cert_file: server.crt', '  key_file: server.key'];
const MUTUAL = [...TLS, '  client_auth_type: RequireAndVerifyClientCert', '  client_ca_file: ca.crt'];
const users = (password: string) => ['basic_auth_users:', `  prometheus: ${hashSync(password, 10)}`];

describe.skipIf(!hasOpenssl || !hasPrometheus)(`Prometheus and a protected agent${unless(hasOpenssl && hasPrometheus, missing)}`, () => {
  const https = (own: object = {}) => ({ scheme: 'https', tls_config: { ca_file: certificates.path('ca.crt'), ...own } });
  const by = (client: string) => https({ cert_file: certificates.path(`${client}.crt`), key_file: certificates.path(`${client}.key`) });
  const auth = (password: string) => ({ basic_auth: { username: 'prometheus', password } });

  it.each<[string, () => readonly string[], () => Record<string, object>, () => Record<string, object>]>([
    ['TLS', () => TLS, () => ({ tls: https() }), () => ({ plain: {}, 'unknown-authority': { scheme: 'https' } })],
    [
      'mutual TLS',
      () => MUTUAL,
      () => ({ mutual: by('client') }),
      () => ({ plain: {}, 'no-certificate': https(), expired: by('expired') }),
    ],
    [
      'TLS and a password',
      () => [...TLS, ...users('sesame')],
      () => ({ password: { ...https(), ...auth('sesame') } }),
      () => ({ 'no-password': https(), 'wrong-password': { ...https(), ...auth('open') }, plain: auth('sesame') }),
    ],
  ])('%s', async (name, lines, right, wrong) => {
    const { agent } = await startWith(name.replaceAll(' ', '-'), lines());
    const jobs = { ...right(), ...wrong() };
    const prometheus: RunningPrometheus = await startPrometheus(plainScrape(new URL(agent.url).host, jobs));
    try {
      const health = async (names: object) => Promise.all(Object.keys(names).map((job) => prometheus.targetHealth(job)));
      await expect.poll(() => health(right())).toEqual(Object.keys(right()).map(() => 'up'));
      await expect.poll(() => health(wrong())).toEqual(Object.keys(wrong()).map(() => 'down'));
      expect(await health(right())).toEqual(Object.keys(right()).map(() => 'up'));
    } finally {
      await prometheus.stop();
    }
  });
});

describe.skipIf(!hasOpenssl)(`a running agent${unless(hasOpenssl, 'openssl is not installed')}`, () => {
  const ask = (url: string, password?: string) =>
    new Promise<{ status: number | undefined; serial: string; body: string }>((resolve, reject) => {
      const auth = password === undefined ? {} : { auth: `prometheus:${password}` };
      get(url, { ca: readFileSync(certificates.path('ca.crt')), agent: false, ...auth }, (response) => {
        const { serialNumber: serial } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate();
        let body = '';
        response.on('data', (part) => {
          body += part;
        });
        response.on('end', () => resolve({ status: response.statusCode, serial, body }));
      }).on('error', reject);
    });

  it('takes new certificates and passwords, and keeps the earlier ones when the file is wrong', async () => {
    const { agent, file } = await startWith('reload', [...TLS, ...users('first')]);
    const metrics = `${agent.url}/metrics`;
    const first = await ask(metrics, 'first');
    expect(first.status).toBe(200);
    expect(seriesValue(first.body, 'device_agent_web_config_last_reload_successful')).toBe(1);
    expect((await ask(`${agent.url}/healthz`)).status).toBe(200);
    certificates.issue('server');
    writeFileSync(file, `${[...TLS, ...users('second')].join('\n')}\n`);
    await expect.poll(async () => (await ask(metrics, 'second')).status, { interval: 500 }).toBe(200);
    const second = await ask(metrics, 'first');
    expect(second.status).toBe(401);
    expect(second.serial).not.toBe(first.serial);
    writeFileSync(file, 'tls_server_confg: {}\n');
    const successful = async () => seriesValue((await ask(metrics, 'second')).body, 'device_agent_web_config_last_reload_successful');
    await expect.poll(successful, { interval: 500 }).toBe(0);
    const refused = agent
      .log()
      .split('\n')
      .filter((line) => line.includes('web configuration not reloaded'));
    expect(refused.length).toBe(1);
    expect(refused[0]).toContain('unknown key \\"tls_server_confg\\"; did you mean tls_server_config?');
  });

  it('does not start with a wrong file', async () => {
    await expect(startWith('wrong', ['basic_auth_users: {alice: secret}'])).rejects.toThrow(
      /the agent ended with 2 before it served:[\s\S]*wrong\.yml:1:27: basic_auth_users\.alice must be a bcrypt hash/,
    );
  });
});

describe.skipIf(!hasOpenssl)(`commands and a protected agent${unless(hasOpenssl, 'openssl is not installed')}`, () => {
  /** Runs a command beside a running agent. */
  const run = (agent: ServedAgent, ...words: readonly string[]) => {
    const env = { ...process.env, DEVICE_AGENT_PATH_SYSFS: root, DEVICE_AGENT_PODRESOURCES_SOCKET: `${root}/none.sock` };
    const flags = [`--web.listen-address=${new URL(agent.url).host}`, '--state.file='];
    return spawnSync(process.execPath, [PROGRAM, ...words, ...flags], { encoding: 'utf8', env });
  };
  const doctor = (agent: ServedAgent, ...words: readonly string[]): Record<string, string> => {
    const results: readonly { readonly name: string; readonly detail: string }[] = JSON.parse(
      run(agent, 'doctor', '--output=json', ...words).stdout,
    ).checks;
    return Object.fromEntries(results.map(({ name, detail }) => [name, detail]));
  };

  it('ask it by TLS, and know it by its certificate', async () => {
    const { agent, file } = await startWith('cli-tls', TLS);
    const { stdout, stderr } = run(agent, 'health', '--output=json', `--web.config.file=${file}`);
    expect(stderr).not.toContain('cannot be asked');
    expect(JSON.parse(stdout).source).toBe('agent');
    expect(doctor(agent, `--web.config.file=${file}`)['listen-address']).toMatch(/in use by a running agent$/);
    expect(run(agent, 'health').stderr).toContain('it closed the connection');
    const other = certificates.path('other.yml');
    writeFileSync(other, 'tls_server_config: {cert_file: client.crt, key_file: client.key}');
    expect(run(agent, 'health', `--web.config.file=${other}`).stderr).toContain('its certificate is not the one of --web.config.file');
  });

  it('say that it asks for a password or a client certificate', async () => {
    const withPassword = await startWith('cli-password', users('sesame'));
    const password = run(withPassword.agent, 'health', `--web.config.file=${withPassword.file}`);
    expect(password.stderr).toContain('it asks for a password');
    const mutual = await startWith('cli-mutual', MUTUAL);
    expect(run(mutual.agent, 'health', `--web.config.file=${mutual.file}`).stderr).toContain('it asks for a client certificate');
    expect(doctor(mutual.agent, `--web.config.file=${mutual.file}`)).toMatchObject({
      'web-config': expect.stringContaining('client certificates: RequireAndVerifyClientCert, no password'),
      'listen-address': expect.stringContaining('it asks for a client certificate'),
    });
  });
});
