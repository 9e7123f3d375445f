/** Header of each answer of the API: which agent answers, as a dictionary of structured fields (RFC 9651). Lower case, as Node names headers. */
export const IDENTITY_HEADER = 'device-agent';

export interface AgentIdentity {
  readonly node: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
}

/** `node="gpu-01", pid=7, started=@1764180485` */
export function identityText({ node, pid, startedMs }: AgentIdentity): string {
  const name = node.replace(/[^ !#-[\]-~]/g, '?');
  return `node="${name}", pid=${pid}, started=@${Math.floor(startedMs / 1_000)}`;
}
