import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import { type RegistrationServer as Methods, type RegisterRequest, RegistrationService } from '../../generated/deviceplugin/v1beta1/api.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { bindGrpc, keepSocketFile, listen, makeRenamedSocket } from './renamed-socket.ts';

/** The kubelet's socket for device plugins, in a directory of its own. */
export class RegistrationServer {
  readonly socket: string;
  readonly #directory: string;
  readonly #register: (request: RegisterRequest) => Promise<void>;
  #end: (() => Promise<void>) | undefined;

  /** `register` fails with what the plugin is to be told. */
  constructor(directory: string, register: (request: RegisterRequest) => Promise<void>) {
    this.socket = join(directory, 'kubelet.sock');
    this.#directory = directory;
    this.#register = register;
  }

  /** Deletes every socket in the directory, other files stay; then listens. */
  async start(): Promise<void> {
    mkdirSync(this.#directory, { recursive: true, mode: 0o750 });
    for (const name of readdirSync(this.#directory)) removeSocket(join(this.#directory, name));
    const server = new Server({ 'grpc.enable_channelz': 0 });
    const methods: Methods = {
      register: ({ request }, callback) => {
        this.#register(request).then(
          () => callback(null, {}),
          (error: Error) => callback({ code: status.UNKNOWN, details: error.message }),
        );
      },
    };
    server.addService(RegistrationService, methods);
    rmSync(this.socket, { force: true });
    // In its place, unlike the socket of PodResources.
    await bindGrpc(server, this.socket);
    this.#end = async () => keepSocketFile(this.socket, () => server.forceShutdown());
  }

  /** Its file stays. */
  async stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    await end?.();
  }

  /** Something else answers at the socket until the next start. */
  async impersonate(kind: Impostor): Promise<void> {
    const { server, end } = createImpostor(kind);
    await makeRenamedSocket(this.socket, (path) => listen(server, path));
    this.#end = end;
  }

  replaceSocketByFile(): void {
    rmSync(this.socket, { force: true });
    writeFileSync(this.socket, '');
  }

  deleteDirectory(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function removeSocket(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path, { force: true });
}
