import { rmSync } from 'node:fs';
import { Server, status } from '@grpc/grpc-js';
import type { CapturedRequest } from '../../capture/format.ts';
import { bindGrpc, makeRenamedSocket } from '../../sim/kubelet/sockets.ts';

/** Methods that the agent calls. */
const METHODS = ['/v1.PodResourcesLister/List', '/v1.PodResourcesLister/GetAllocatableResources', '/v1alpha1.PodResourcesLister/List'];

/** A gRPC server that gives the captured answers of a kubelet, byte by byte. */
export class ReplayedKubelet {
  readonly #socket: string;
  #requests: readonly CapturedRequest[] = [];
  #server: Server | undefined;

  constructor(socket: string) {
    this.#socket = socket;
  }

  /** A kubelet that was never reached has no socket, and one that refused connections has a socket without a server. */
  async answer(requests: readonly CapturedRequest[]): Promise<void> {
    this.#requests = requests;
    if (requests.length === 0) return this.stop();
    if (this.#server === undefined) await this.#start();
    if (requests.at(-1)?.error?.errno === 'ECONNREFUSED') this.#end();
  }

  stop(): void {
    this.#end();
    rmSync(this.#socket, { force: true });
  }

  async #start(): Promise<void> {
    const server = new Server();
    const same = (bytes: Buffer): Buffer => bytes;
    for (const method of METHODS)
      server.register(method, (_call: unknown, callback: Callback) => this.#call(method, callback), same, same, 'unary');
    await makeRenamedSocket(this.#socket, (path) => bindGrpc(server, path));
    this.#server = server;
  }

  #end(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  #call(method: string, callback: Callback): void {
    const { answer, error } = this.#requests.find((request) => request.method === method) ?? {};
    if (answer !== undefined) callback(null, Buffer.from(answer, 'base64'));
    else callback(error ?? { code: status.UNIMPLEMENTED, details: 'this method was not called in the capture' });
  }
}

type Callback = (error: { readonly code: number; readonly details: string } | null, answer?: Buffer) => void;
