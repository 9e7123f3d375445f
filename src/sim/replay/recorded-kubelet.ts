import { rmSync } from 'node:fs';
import { Server, status } from '@grpc/grpc-js';
import type { Frame, FrameRequest } from '../../capture/frame.ts';
import { bindGrpc, makeRenamedSocket } from '../kubelet/sockets.ts';

/** Methods that the agent calls. */
const METHODS: readonly string[] = [
  '/v1.PodResourcesLister/List',
  '/v1.PodResourcesLister/GetAllocatableResources',
  '/v1alpha1.PodResourcesLister/List',
];
/** Failures of the connection itself, before the kubelet sees a call. */
const NOBODY_LISTENS = 'ECONNREFUSED';

/** A gRPC server that gives the recorded answers of a kubelet, byte by byte. */
export class RecordedKubelet {
  readonly #socket: string;
  readonly #requests = new Map<string, FrameRequest>();
  #server: Server | undefined;
  #kubelet: number | undefined;

  constructor(socket: string) {
    this.#socket = socket;
  }

  /** A new kubelet gets a new socket. A kubelet that was never reached has none. */
  async apply({ requests }: Frame): Promise<void> {
    for (const request of requests) this.#requests.set(request.method, request);
    const latest = requests.at(-1);
    if (latest === undefined) return;
    const isRefused = latest.error?.errno === NOBODY_LISTENS;
    if (latest.kubelet !== this.#kubelet) await this.#restart();
    this.#kubelet = latest.kubelet;
    if (isRefused) this.#end();
    else if (this.#server === undefined) await this.#restart();
  }

  stop(): void {
    this.#end();
    rmSync(this.#socket, { force: true });
  }

  async #restart(): Promise<void> {
    this.#end();
    const server = new Server();
    const same = (bytes: Buffer): Buffer => bytes;
    for (const method of METHODS) {
      server.register(method, (_call: unknown, callback: Callback) => this.#answer(method, callback), same, same, 'unary');
    }
    await makeRenamedSocket(this.#socket, (path) => bindGrpc(server, path));
    this.#server = server;
  }

  #end(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #answer(method: string, callback: Callback): void {
    const { answer, error } = this.#requests.get(method) ?? {};
    if (answer !== undefined) callback(null, Buffer.from(answer, 'base64'));
    else callback(error ?? { code: status.UNIMPLEMENTED, details: 'this method was not called in the capture' });
  }
}

type Callback = (error: { readonly code: number; readonly details: string } | null, answer?: Buffer) => void;
