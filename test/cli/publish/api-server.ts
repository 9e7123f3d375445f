import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Certificates } from '../../support/certificates.ts';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly lastHeartbeatTime: string;
}

export interface Patch {
  readonly atMs: number;
  readonly node: string;
  /** False when the node had these words already. */
  readonly changes: boolean;
  readonly conditions: readonly Condition[];
}

interface NodeObject {
  readonly uid: string;
  /** Those of others stay whatever the publisher applies. */
  conditions: readonly Condition[];
  taints: readonly Taint[];
  version: number;
}

export interface Taint {
  readonly key: string;
  readonly effect: string;
}

export interface EventObject {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly namespace?: string; readonly uid?: string };
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface RuleObject {
  readonly apiVersion?: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: object;
}

export const TOKEN = 'a-token';
const GROUP = '/apis/resource.k8s.io';
const RULES = /^\/apis\/resource\.k8s\.io\/(?<version>v\w+)\/devicetaintrules(?:\/(?<name>[^/]+))?$/;
const READY: Condition = {
  ...wordsOf('Ready', 'True'),
  lastTransitionTime: '2030-01-01T00:00:00Z',
  lastHeartbeatTime: '2030-01-01T00:00:00Z',
};

function wordsOf(type: string, status: string): Pick<Condition, 'type' | 'status' | 'reason' | 'message'> {
  return { type, status, reason: 'Kubelet', message: 'ready' };
}

/** What the publisher uses of an API server, with TLS and a token: it counts what is written, and can fail in several ways. */
export class ApiServer {
  readonly certificates = new Certificates();
  readonly nodes = new Map<string, NodeObject>();
  readonly events = new Map<string, EventObject>();
  readonly rules = new Map<string, RuleObject>();
  /** Lists of taints that were sent, with whether the version of the node was the present one. */
  readonly taintPatches: { readonly isTaken: boolean; readonly taints: readonly Taint[] }[] = [];
  /** What another writer does between the reading and the patch of the publisher. */
  meanwhile: (() => void) | undefined;
  readonly patches: Patch[] = [];
  requests = 0;
  /** Events that existed already. */
  repeated = 0;
  fault: 'hang' | 'error' | 'cut' | undefined;
  token = TOKEN;
  /** Namespaces that do not exist. */
  readonly goneNamespaces = new Set<string>();
  /** Status with which each namespace refuses events. */
  readonly refusing = new Map<string, number>();
  /** Versions of the group of claims, and whether each has taint rules. All versions show the same rules. */
  versions: Readonly<Record<string, boolean>> = { v1: false, v1beta2: true };
  /** As a proxy or a webhook that takes parts out of what is written. */
  isForgetful = false;
  /** Text about a node that does not exist. */
  nodeText = 'not found';
  /** Methods and paths, in their order. */
  readonly calls: string[] = [];
  #server: Server;
  #uids = 0;

  constructor() {
    this.certificates.issue('api');
    const [key, cert] = ['api.key', 'api.crt'].map((name) => readFileSync(this.certificates.path(name), 'utf8'));
    this.#server = createServer({ key, cert }, (request, response) => this.#take(request, response));
  }

  addNode(name: string): void {
    this.#uids += 1;
    this.nodes.set(name, { uid: `uid-${this.#uids}`, conditions: [READY], taints: [], version: 1 });
  }

  /** As another writer changes it. */
  setTaints(name: string, change: (taints: readonly Taint[]) => readonly Taint[]): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    node.taints = change(node.taints);
    node.version += 1;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    this.certificates.remove();
  }

  /** `type` to `status (reason)`, of the publisher. */
  said(node: string): Readonly<Record<string, string>> {
    const own = this.conditions(node).map(({ type, status, reason }) => [type, `${status} (${reason})`] as const);
    return Object.fromEntries(own);
  }

  /** The conditions of the publisher. */
  conditions(node: string): readonly Condition[] {
    return this.nodes.get(node)?.conditions.filter(({ type }) => type.startsWith('Devices')) ?? [];
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      this.requests += 1;
      if (this.fault === 'hang') return;
      if (this.fault === 'cut') return void request.socket.destroy();
      const [status, body] = this.#answer(request, text);
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    });
  }

  #answer({ method, url = '', headers }: IncomingMessage, text: string): readonly [number, object] {
    const failed = (code: number, message: string): [number, object] => [code, { kind: 'Status', code, message }];
    if (this.fault === 'error') return failed(500, 'etcd has no leader');
    if (headers.authorization !== `Bearer ${this.token}`) return failed(401, 'Unauthorized');
    const { pathname, searchParams } = new URL(url, 'https://api');
    this.calls.push(`${method} ${pathname}`);
    const [, node] = /^\/api\/v1\/nodes\/([^/]+)/.exec(pathname) ?? [];
    if (node !== undefined)
      return (
        (method === 'PATCH' && !pathname.endsWith('/status')
          ? this.#taintAnswer(node, text)
          : this.#nodeAnswer(node, method === 'PATCH' ? text : undefined, headers, searchParams)) ??
        failed(404, `nodes "${node}" ${this.nodeText}`)
      );
    const [, namespace] = /^\/api\/v1\/namespaces\/([^/]+)\/events$/.exec(pathname) ?? [];
    if (namespace !== undefined) {
      const refusal = this.refusing.get(namespace);
      if (refusal !== undefined) return failed(refusal, `exceeded quota: events-of-${namespace}`);
      if (this.goneNamespaces.has(namespace)) return failed(404, `namespaces "${namespace}" not found`);
      const event = JSON.parse(text) as EventObject;
      const key = `${namespace}/${event.metadata.name}`;
      if (this.events.has(key)) this.repeated += 1;
      if (this.events.has(key)) return failed(409, 'exists');
      this.events.set(key, event);
      return [201, event];
    }
    if (pathname.startsWith(GROUP)) return this.#groupAnswer(method, pathname, searchParams, text) ?? failed(404, 'no such path');
    return failed(404, 'no such path');
  }

  #groupAnswer(
    method: string | undefined,
    pathname: string,
    parameters: URLSearchParams,
    text: string,
  ): readonly [number, object] | undefined {
    const versions = Object.keys(this.versions);
    if (pathname === GROUP) return versions.length === 0 ? undefined : [200, { versions: versions.map((version) => ({ version })) }];
    const document = versions.find((version) => pathname === `${GROUP}/${version}`);
    if (document !== undefined) {
      const rules = this.versions[document] === true ? [{ name: 'devicetaintrules' }, { name: 'devicetaintrules/status' }] : [];
      return [200, { resources: [{ name: 'resourceclaims' }, ...rules] }];
    }
    const { version = '', name } = RULES.exec(pathname)?.groups ?? {};
    if (this.versions[version] !== true) return undefined;
    if (name === undefined) {
      const [label = '', value] = (parameters.get('labelSelector') ?? '').split('=');
      const items = [...this.rules.values()].filter(({ metadata }) => metadata.labels[label] === value);
      return [200, { items: this.isForgetful ? [] : items }];
    }
    const key = decodeURIComponent(name);
    if (method === 'DELETE') return this.rules.delete(key) ? [200, {}] : undefined;
    const rule = JSON.parse(text) as RuleObject;
    if (rule.apiVersion !== `resource.k8s.io/${version}`) return [400, { message: 'another version' }];
    this.rules.set(key, rule);
    return [200, rule];
  }

  /** A merge patch that names a version is taken only when the node still has it. */
  #taintAnswer(name: string, text: string): readonly [number, object] | undefined {
    this.meanwhile?.();
    const node = this.nodes.get(name);
    if (node === undefined) return undefined;
    const { metadata, spec } = JSON.parse(text) as { metadata: { resourceVersion: string }; spec: { taints: readonly Taint[] } };
    const isTaken = metadata.resourceVersion === String(node.version);
    this.taintPatches.push({ isTaken, taints: spec.taints });
    if (!isTaken) return [409, { message: 'the object has been modified' }];
    if (!this.isForgetful) this.setTaints(name, () => spec.taints);
    return [200, { metadata: { name }, spec: { taints: node.taints } }];
  }

  /** `text`: what is applied. An apply owns the conditions that it names, and removes those that it named before. */
  #nodeAnswer(
    name: string,
    text: string | undefined,
    headers: IncomingMessage['headers'],
    parameters: URLSearchParams,
  ): readonly [number, object] | undefined {
    const node = this.nodes.get(name);
    if (node === undefined) return undefined;
    if (text !== undefined) {
      if (headers['content-type'] !== 'application/apply-patch+yaml' || parameters.get('fieldManager') === null) return [415, {}];
      const { status } = JSON.parse(text) as { status: { conditions?: readonly Condition[] } };
      const conditions = status.conditions ?? [];
      const words = (all: readonly Condition[]): string =>
        JSON.stringify(all.map(({ type, status: is, reason, message }) => [type, is, reason, message]));
      this.patches.push({ atMs: performance.now(), node: name, changes: words(this.conditions(name)) !== words(conditions), conditions });
      if (!this.isForgetful) node.conditions = [...node.conditions.filter(({ type }) => !type.startsWith('Devices')), ...conditions];
      node.version += 1;
    }
    const { uid, version, taints } = node;
    const metadata = { name, uid, resourceVersion: String(version) };
    return [200, { apiVersion: 'v1', kind: 'Node', metadata, spec: { taints }, status: { conditions: node.conditions } }];
  }
}
