import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { whyNoHelm } from '../support/chart.ts';
import { isInstalled } from '../support/installed.ts';
import { unless } from '../support/skipped.ts';

interface Layout {
  addImage(architecture: string, layers: readonly object[], config: object): string;
  close(name: string, version: string): string;
}
const { Layout } = (await import(pathToFileURL('scripts/image/layout.mjs').href)) as { Layout: new (directory: string) => Layout };
const run = promisify(execFile);
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const PASSWORD = 'not-a-secret';
const noHelm = whyNoHelm();
const withHelm = noHelm === undefined;

let folder: string;
let layout: string;
let image: string;
let close: (() => Promise<unknown>) | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'push-'));
  layout = join(folder, 'image');
  mkdirSync(join(folder, 'layer'));
  const written = new Layout(layout);
  for (const architecture of ['amd64', 'arm64']) {
    writeFileSync(join(folder, 'layer/agent'), architecture);
    written.addImage(architecture, [{ title: 'the agent', directory: join(folder, 'layer') }], { Entrypoint: ['/agent'] });
  }
  image = written.close('device-agent', version);
});
afterEach(async () => {
  await close?.();
  close = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const push = (place: string, env: Readonly<Record<string, string>> = {}): Promise<{ stdout: string }> =>
  run(process.execPath, ['scripts/push.mjs', place, `--layout=${layout}`], { env: { ...process.env, ...env } });

const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

/** A registry that refuses what a real one refuses: a manifest before its parts, and bytes that are not those of their digest. */
class SmallRegistry {
  readonly blobs = new Map<string, Buffer>();
  readonly manifests = new Map<string, Buffer>();
  uploads = 0;
  readonly #server: Server;
  readonly #asksFor: 'nothing' | 'token';

  constructor(asksFor: 'nothing' | 'token' = 'nothing') {
    this.#asksFor = asksFor;
    this.#server = createServer(async (request, response) => {
      const [status, headers = {}, body = ''] = await this.#answer(request);
      response.writeHead(status, headers).end(body);
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    close = () => new Promise((resolve) => this.#server.close(resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage): Promise<[status: number, headers?: Record<string, string>, body?: string]> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? '', `http://${request.headers.host}`);
    if (url.pathname === '/token') {
      const isUser = request.headers.authorization === `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`;
      return isUser ? [200, {}, JSON.stringify({ token: url.searchParams.get('scope') })] : [401];
    }
    const [, repository = '', kind = '', reference = ''] = /^\/v2\/(.+)\/(blobs|manifests)\/(.+)$/.exec(url.pathname) ?? [];
    if (this.#asksFor === 'token' && request.headers.authorization !== `Bearer repository:${repository.replace(/\/blobs$/, '')}:pull,push`)
      return [401, { 'www-authenticate': `Bearer realm="${url.origin}/token",service="small"` }];
    if (kind === 'manifests') return [this.#takeManifest(repository, reference, body)];
    if (request.method === 'HEAD') return [this.blobs.has(`${repository}@${reference}`) ? 200 : 404];
    if (request.method === 'POST') return [202, { location: `/v2/${repository}/blobs/uploads/1?state=x` }];
    const digest = url.searchParams.get('digest') ?? '';
    if (url.searchParams.get('state') !== 'x' || digestOf(body) !== digest) return [400];
    this.uploads += 1;
    this.blobs.set(`${repository}@${digest}`, body);
    return [201];
  }

  #takeManifest(repository: string, reference: string, body: Buffer): number {
    const { manifests = [], config, layers = [] } = JSON.parse(body.toString()) as Manifest;
    const areThere =
      manifests.every(({ digest }) => this.manifests.has(`${repository}@${digest}`)) &&
      (config === undefined ? [] : [config, ...layers]).every(({ digest }) => this.blobs.has(`${repository}@${digest}`));
    if (!areThere) return 404;
    for (const name of [reference, digestOf(body)]) this.manifests.set(`${repository}@${name}`, body);
    return 201;
  }
}

interface Manifest {
  readonly manifests?: readonly { readonly digest: string; readonly platform: { readonly architecture: string } }[];
  readonly config?: { readonly digest: string };
  readonly layers?: readonly { readonly digest: string; readonly mediaType: string }[];
}

describe(`npm run push${unless(withHelm, noHelm ?? '')}`, () => {
  it.skipIf(!withHelm)('writes the image of both architectures and the chart below the path, each part before what names it', async () => {
    const registry = new SmallRegistry();
    const place = `${await registry.start()}/tools`;
    const { stdout } = await push(place);
    expect(stdout).toContain(`image ${place}/device-agent:${version} ${image}`);
    const index = JSON.parse(String(registry.manifests.get(`tools/device-agent@${version}`))) as Manifest;
    expect(index.manifests?.map(({ platform }) => platform.architecture)).toEqual(['amd64', 'arm64']);
    const chart = JSON.parse(String(registry.manifests.get(`tools/charts/device-agent@${version}`))) as Manifest;
    expect(chart.layers?.map(({ mediaType }) => mediaType)).toEqual(['application/vnd.cncf.helm.chart.content.v1.tar+gzip']);
    const { uploads } = registry;
    // The archive of the chart has times, so it alone is new.
    await push(place);
    expect(registry.uploads - uploads).toBeLessThanOrEqual(1);
  });

  it.skipIf(!withHelm)('gets a token for its password, and says in one line what is missing', async () => {
    const registry = new SmallRegistry('token');
    const place = await registry.start();
    await push(place, { REGISTRY_USERNAME: 'ada', REGISTRY_PASSWORD: PASSWORD });
    expect(registry.manifests.has(`charts/device-agent@${version}`)).toBe(true);
    await expect(push(place)).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^push: .* gives no token: status 401\n$/) });
    await expect(push('127.0.0.1:1')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^push: fetch failed.*\n$/) });
  });

  const isThere = withHelm && isInstalled('docker-registry');
  it.skipIf(!isThere)(
    `is taken by a real registry, from which helm pulls the chart${unless(isThere, 'docker-registry is not installed')}`,
    async () => {
      const file = join(folder, 'registry.yml');
      const storage = { filesystem: { rootdirectory: join(folder, 'registry') } };
      writeFileSync(file, JSON.stringify({ version: 0.1, log: { level: 'info' }, storage, http: { addr: '127.0.0.1:0' } }));
      const server = spawn('docker-registry', ['serve', file], { stdio: ['ignore', 'ignore', 'pipe'] });
      const ended = new Promise((resolve) => server.once('exit', resolve));
      close = () => {
        server.kill('SIGKILL');
        return ended;
      };
      let log = '';
      const place = await new Promise<string>((resolve, reject) => {
        server.stderr.setEncoding('utf8').on('data', (text: string) => {
          log += text;
          const [, address] = /listening on (127\.0\.0\.1:\d+)/.exec(log) ?? [];
          if (address !== undefined) resolve(address);
        });
        server.once('exit', () => reject(new Error(log)));
      });
      await push(place);
      const accept = 'application/vnd.oci.image.index.v1+json';
      const answer = await fetch(`http://${place}/v2/device-agent/manifests/${version}`, { headers: { accept } });
      expect(digestOf(Buffer.from(await answer.arrayBuffer()))).toBe(image);
      const words = ['pull', `oci://${place}/charts/device-agent`, '--version', version, '--plain-http', '--destination', folder];
      const { status, stderr } = spawnSync(process.env.HELM ?? 'helm', words, { encoding: 'utf8' });
      expect([status, stderr]).toEqual([0, expect.anything()]);
      const shown = spawnSync(process.env.HELM ?? 'helm', ['show', 'chart', join(folder, `device-agent-${version}.tgz`)], {
        encoding: 'utf8',
      });
      expect(shown.stdout).toContain(`version: ${version}`);
    },
  );
});
