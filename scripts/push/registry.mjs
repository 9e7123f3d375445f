// A client for any registry, by the OCI distribution API: it writes blobs and manifests.
import { createHash } from 'node:crypto';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const LOCAL = /^(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/;

export class Registry {
  #base;
  #user;
  /** What the registry asked for last, for each repository. */
  #authorization = new Map();

  /** `place`: host, port and the start of each repository's name. As docker does, it speaks HTTP to this machine only. */
  constructor(place, { username, password } = {}) {
    const [host, ...start] = place
      .replace(/^oci:\/\//, '')
      .replace(/\/+$/, '')
      .split('/');
    if (host === '' || place.includes(' '))
      throw new Error(`"${place}" is no registry: give host, port and path, as in registry.example.com:5000/tools`);
    this.#base = `${LOCAL.test(host) ? 'http' : 'https'}://${host}`;
    this.start = start.join('/');
    this.#user = username === undefined ? undefined : `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
  }

  /** Writes a manifest after all that it names. `read` gives the bytes of a digest. Returns the digest of the manifest. */
  async pushTree(repository, descriptor, read, tag) {
    const content = read(descriptor.digest);
    const { manifests = [], config, layers = [] } = JSON.parse(content);
    if (![INDEX, MANIFEST].includes(descriptor.mediaType)) throw new Error(`${descriptor.mediaType} is no manifest`);
    for (const each of manifests) await this.pushTree(repository, each, read);
    for (const each of config === undefined ? [] : [config, ...layers]) await this.#pushBlob(repository, each.digest, read);
    const path = `/v2/${this.#name(repository)}/manifests/${tag ?? descriptor.digest}`;
    await this.#ask(repository, path, { method: 'PUT', headers: { 'content-type': descriptor.mediaType }, body: content }, [201]);
    return descriptor.digest;
  }

  #name(repository) {
    return this.start === '' ? repository : `${this.start}/${repository}`;
  }

  async #pushBlob(repository, digest, read) {
    const path = `/v2/${this.#name(repository)}/blobs`;
    const known = await this.#ask(repository, `${path}/${digest}`, { method: 'HEAD' }, [200, 404]);
    if (known.status === 200) return;
    const begun = await this.#ask(repository, `${path}/uploads/`, { method: 'POST' }, [202]);
    const to = new URL(begun.headers.get('location') ?? '', this.#base);
    to.searchParams.set('digest', digest);
    const headers = { 'content-type': 'application/octet-stream' };
    await this.#ask(repository, to.href, { method: 'PUT', headers, body: read(digest) }, [201]);
  }

  async #ask(repository, path, request, expected) {
    const url = new URL(path, this.#base);
    // Only the registry itself gets the password, and no store to which it sends an upload.
    const isOwn = url.origin === this.#base;
    const send = () => {
      const authorization = isOwn ? this.#authorization.get(repository) : undefined;
      return fetch(url, { ...request, headers: { ...request.headers, ...(authorization && { authorization }) } });
    };
    let answer = await send();
    if (answer.status === 401 && isOwn) {
      this.#authorization.set(repository, await this.#authorize(repository, answer.headers.get('www-authenticate') ?? ''));
      answer = await send();
    }
    if (expected.includes(answer.status)) return answer;
    const text = (await answer.text()).slice(0, 300);
    throw new Error(`${request.method} ${url.origin}${url.pathname}: status ${answer.status} ${text}`);
  }

  async #authorize(repository, challenge) {
    if (this.#user !== undefined && /^basic/i.test(challenge)) return this.#user;
    const fields = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
    if (!/^bearer/i.test(challenge) || fields.realm === undefined)
      throw new Error('the registry asks for a password: set REGISTRY_USERNAME and REGISTRY_PASSWORD');
    const url = new URL(fields.realm);
    // A challenge must not lead the password to a connection that others can read.
    if (url.protocol !== 'https:' && !LOCAL.test(url.host)) throw new Error(`the registry sends to ${url.origin} for a token, without TLS`);
    if (fields.service !== undefined) url.searchParams.set('service', fields.service);
    url.searchParams.set('scope', `repository:${this.#name(repository)}:pull,push`);
    const answer = await fetch(url, { headers: this.#user === undefined ? {} : { authorization: this.#user } });
    if (!answer.ok) throw new Error(`${url.origin} gives no token: status ${answer.status}`);
    const { token, access_token = token } = await answer.json();
    return `Bearer ${access_token}`;
  }
}

/** The chart as helm pushes it: a manifest and its blobs, by digest. `metadata`: the content of Chart.yaml. */
export function chartTree(archive, metadata) {
  const blobs = new Map();
  const add = (mediaType, content) => {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    blobs.set(digest, content);
    return { mediaType, digest, size: content.length };
  };
  const config = add('application/vnd.cncf.helm.config.v1+json', Buffer.from(JSON.stringify(metadata)));
  const layers = [add('application/vnd.cncf.helm.chart.content.v1.tar+gzip', archive)];
  const manifest = add(MANIFEST, Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers })));
  return { manifest, read: (digest) => blobs.get(digest) };
}
