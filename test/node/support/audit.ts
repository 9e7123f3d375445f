import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A request as the API server recorded it. */
export interface AuditedRequest {
  readonly verb: string;
  /** With its subresource: `nodes/status`. */
  readonly resource: string;
  readonly name: string;
  readonly code: number;
  readonly atMs: number;
  readonly body: unknown;
}

interface Entry {
  readonly verb: string;
  readonly objectRef?: { readonly resource: string; readonly subresource?: string; readonly name?: string };
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
  readonly requestObject?: unknown;
}

/** The audit log of an API server, of the requests of one user. */
export class Audit {
  readonly #folder = mkdtempSync(join(tmpdir(), 'audit-'));
  readonly #log = join(this.#folder, 'log');

  /** Returns the flags of the API server. */
  flags(user: string): string {
    const policy = join(this.#folder, 'policy.json');
    const rules = [{ level: 'Request', users: [user] }, { level: 'None' }];
    writeFileSync(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }));
    return `--audit-policy-file=${policy} --audit-log-path=${this.#log} --audit-log-mode=blocking-strict`;
  }

  /** Returns the requests from a number of requests on. */
  requests(from = 0): readonly AuditedRequest[] {
    // The last line is empty, or still being written.
    const lines = readFileSync(this.#log, 'utf8').split('\n').slice(from, -1);
    return lines.map((line) => {
      const { verb, objectRef, responseStatus, requestReceivedTimestamp, requestObject } = JSON.parse(line) as Entry;
      const resource = [objectRef?.resource ?? '', ...(objectRef?.subresource === undefined ? [] : [objectRef.subresource])].join('/');
      const atMs = Date.parse(requestReceivedTimestamp);
      return { verb, resource, name: objectRef?.name ?? '', code: responseStatus?.code ?? 0, atMs, body: requestObject };
    });
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
