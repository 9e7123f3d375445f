import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { Server, status } from '@grpc/grpc-js';
import { type DeepPartial, type ListPodsRequest, Pod, PodsService } from '../../../src/generated/pods/v1alpha1/api.ts';
import { CallRefused, unary } from '../../../src/sim/kubelet/pod-resources-service.ts';
import { bindGrpc, makeRenamedSocket } from '../../../src/sim/kubelet/sockets.ts';

export const SECRET = 'the-value-of-an-environment-variable';

type Answer = Buffer | { readonly code: number; readonly details: string };

/** A live pod of namespace `ml`, as the kubelet encodes it: with an environment variable and labels that the agent does not read. */
export function encodedPod(
  name: string,
  uid: string,
  status: DeepPartial<Pod['status']> = {},
  spec?: DeepPartial<Pod['spec']>,
): Uint8Array {
  const metadata = { name, namespace: 'ml', uid };
  const read = Pod.encode(Pod.fromPartial({ metadata, spec, status: { phase: 'Running', ...status } } as DeepPartial<Pod>)).finish();
  // Field 2 is the specification; 2 in it a container, 7 in that a variable, and 2 in that its value.
  const unread = new BinaryWriter().uint32(18).fork().uint32(18).fork().uint32(58).fork().uint32(18).string(SECRET).join().join().join();
  return Buffer.concat([unread.finish(), read]);
}

export function listOf(...pods: readonly Uint8Array[]): Buffer {
  const writer = new BinaryWriter();
  for (const pod of pods) writer.uint32(10).bytes(pod);
  return Buffer.from(writer.finish());
}

/** A kubelet's Pods API in a directory: answers with whatever bytes it is told. */
export class TestPodsApi {
  readonly socket: string;
  #server: Server | undefined;
  #answer: Answer = listOf();
  #calls = 0;
  #gate: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.socket = join(directory, 'pods-api', 'pods-api.sock');
  }

  get calls(): number {
    return this.#calls;
  }

  says(...pods: readonly Uint8Array[]): void {
    this.#answer = listOf(...pods);
  }

  refuses(code: number, details = ''): void {
    this.#answer = { code, details };
  }

  /** Answers wait until the returned function is called. */
  hold(): () => void {
    let release = (): void => {};
    this.#gate = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  async start(): Promise<void> {
    await this.stop();
    const server = new Server();
    const list = unary<ListPodsRequest, Buffer>(async () => {
      this.#calls += 1;
      const answer = this.#answer;
      await this.#gate;
      if (!Buffer.isBuffer(answer)) throw new CallRefused(answer.code, answer.details);
      return answer;
    });
    server.addService({ listPods: { ...PodsService.listPods, responseSerialize: (bytes: Buffer) => bytes } }, { listPods: list });
    await makeRenamedSocket(this.socket, (path) => bindGrpc(server, path));
    this.#server = server;
  }

  /** Its socket stays, as that of a kubelet that ended. */
  async stop(): Promise<void> {
    this.#server?.forceShutdown();
    this.#server = undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.socket, { force: true });
  }
}

/** What a kubelet says until it knows its pods. */
export const NOT_READY = status.FAILED_PRECONDITION;
