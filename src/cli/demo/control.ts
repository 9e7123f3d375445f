import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { nearestHint } from '../../config/nearest.ts';
import { FaultRefusal, type ListedFault, type NodeFault } from '../../sim/faults.ts';
import type { SimulatedNode } from '../../sim/node.ts';

/** Names in the directory of the node. The directory itself is open to its owner only. */
export const CONTROL_SOCKET = 'control.sock';
export const DEMO_FILE = 'demo.json';

/** Content of {@link DEMO_FILE}: how to find a demo. */
export interface DemoFacts {
  readonly pid: number;
  /** Address of its agent. */
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
}

/** One line of JSON in each direction, then the connection ends. */
export type ControlRequest =
  | { readonly do: 'list' }
  | { readonly do: 'begin'; readonly name: string; readonly device?: string }
  | { readonly do: 'clear'; readonly what?: string };

/** A fault with the time since it runs. */
export interface ReportedFault {
  readonly family: string;
  readonly name: string;
  /** Absent for a fault of all devices of the family. */
  readonly device?: string;
  /** Seconds since its beginning. */
  readonly seconds: number;
}

export type ControlAnswer =
  | { readonly faults: readonly ListedFault[]; readonly running: readonly ReportedFault[] }
  | { readonly began: ReportedFault }
  | { readonly ended: readonly ReportedFault[] }
  | { readonly refused: string };

export interface ControlServer {
  close(): Promise<void>;
}

const LONGEST_REQUEST = 4_096;
const MOST_CLIENTS = 16;
/** Longer than this process may be busy, so that a request that waits is answered. */
const PATIENCE_MS = 60_000;

/** Lets commands of the same user change the faults of the node. */
export async function serveControl(node: SimulatedNode, address: string): Promise<ControlServer> {
  const clients = new Set<Socket>();
  const server = createServer((socket) => {
    clients.add(socket);
    socket.once('close', () => clients.delete(socket));
    serveOne(node, socket);
  });
  server.maxConnections = MOST_CLIENTS;
  const path = join(node.root, CONTROL_SOCKET);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  const facts: DemoFacts = { pid: process.pid, address, startedMs: Date.now() };
  const file = join(node.root, DEMO_FILE);
  writeFileSync(`${file}.new`, `${JSON.stringify(facts)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      }),
  };
}

function serveOne(node: SimulatedNode, socket: Socket): void {
  let text = '';
  socket.setTimeout(PATIENCE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.length > LONGEST_REQUEST) return void socket.destroy();
    const end = text.indexOf('\n');
    if (end < 0) return;
    socket.removeAllListeners('data').resume();
    socket.end(`${JSON.stringify(answered(node, text.slice(0, end)))}\n`);
  });
}

function answered(node: SimulatedNode, line: string): ControlAnswer {
  try {
    const request = requestIn(line);
    return request === undefined ? { refused: 'the demo does not know this request; it may be of another version' } : answer(node, request);
  } catch (error) {
    if (error instanceof FaultRefusal) return { refused: `${error.message}${hintOf(error)}` };
    // The step of the node failed, for example because its directory is gone. The demo itself reports that.
    return { refused: `the demo cannot change its node: ${String(error)}` };
  }
}

const hintOf = ({ unknown }: FaultRefusal): string => (unknown === undefined ? '' : nearestHint(unknown.name, unknown.known));

function answer(node: SimulatedNode, request: ControlRequest): ControlAnswer {
  // A fault that begins now has 0 seconds, however long its beginning takes.
  const askedMs = node.elapsedMs;
  const stateOf = ({ family, name, device, fromMs }: Omit<NodeFault, 'untilMs'>): ReportedFault => ({
    family,
    name,
    ...(device !== undefined && { device }),
    seconds: Math.max(0, Math.round((askedMs - fromMs) / 1_000)),
  });
  switch (request.do) {
    case 'list': {
      const faults = node.faults.list();
      return { faults, running: faults.flatMap(({ family, name, running }) => running.map((one) => stateOf({ family, name, ...one }))) };
    }
    case 'begin':
      return { began: stateOf(node.begin(request.name, request.device)) };
    case 'clear':
      return { ended: node.clear(request.what).map(stateOf) };
  }
}

/** Undefined for anything that is no request. */
function requestIn(line: string): ControlRequest | undefined {
  const isText = (value: unknown): boolean => typeof value === 'string';
  const isTextOrAbsent = (value: unknown): boolean => value === undefined || isText(value);
  try {
    const given = JSON.parse(line) as Readonly<Record<string, unknown>> | null;
    const isKnown =
      given?.do === 'list' ||
      (given?.do === 'begin' && isText(given.name) && isTextOrAbsent(given.device)) ||
      (given?.do === 'clear' && isTextOrAbsent(given.what));
    return isKnown ? (given as unknown as ControlRequest) : undefined;
  } catch {
    return undefined;
  }
}
