import { type ExecFileException, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
/** What npm says when there is no way to the registry. */
const OFFLINE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ENOTCACHED)\b/;

/** Why no container image can be built here; undefined when one can. */
export function whyNoBuild(): string | undefined {
  if (spawnSync('buildah', ['--version']).error !== undefined) return 'there is no buildah';
  if (process.getuid?.() !== 0) return 'it takes root';
  return undefined;
}

export interface ImageConfig {
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly ExposedPorts: Readonly<Record<string, object>>;
}

/** Images and containers of buildah below one directory, without daemon, registry or namespaces. */
export class ImageBuild {
  readonly #directory: string;
  readonly #store: readonly string[];

  constructor(directory: string) {
    this.#directory = directory;
    const [root, run] = [join(directory, 'storage'), join(directory, 'run')];
    this.#store = ['buildah', '--root', root, '--runroot', run, '--storage-driver', 'vfs'];
  }

  /** An image of this machine's Node where distroless has it, with npm, a shell, and what these need, for what cannot be pulled. */
  makeBase(name: string): void {
    const files = join(this.#directory, 'base');
    const npm = resolve(this.#npm('root', '--global'), 'npm');
    for (const [from, to] of [
      [process.execPath, '/nodejs/bin/node'],
      ['/bin/sh', '/bin/sh'],
      ['/usr/bin/env', '/usr/bin/env'],
    ] as const) {
      for (const library of execFileSync('ldd', [from], { encoding: 'utf8' }).match(/\/\S+/g) ?? []) place(library, join(files, library));
      place(from, join(files, to));
    }
    place(npm, join(files, 'usr/lib/npm'));
    if (existsSync(CERTIFICATES)) place(CERTIFICATES, join(files, CERTIFICATES));
    for (const folder of ['tmp', 'usr/local/bin']) mkdirSync(join(files, folder), { recursive: true });
    symlinkSync('../lib/npm/bin/npm-cli.js', join(files, 'usr/bin/npm'));
    symlinkSync('/nodejs/bin/node', join(files, 'usr/bin/node'));
    const container = this.run('from', 'scratch').trim();
    this.run('copy', '--quiet', container, files, '/');
    const variables = [
      'PATH=/usr/local/bin:/usr/bin:/bin',
      'npm_config_cache=/npm',
      ...(existsSync(CERTIFICATES) ? [`NODE_EXTRA_CA_CERTS=${CERTIFICATES}`] : []),
    ];
    this.run('config', ...variables.flatMap((variable) => ['--env', variable]), container);
    this.run('commit', '--quiet', '--rm', container, name);
  }

  /** Builds as the Dockerfile says, with values for its arguments and this machine's npm cache. Gives why not, when the registry of packages is out of reach. */
  build(dockerfile: string, name: string, values: Readonly<Record<string, string>>): string | undefined {
    const cache = this.#npm('config', 'get', 'cache');
    const words = Object.entries(values).flatMap(([argument, value]) => ['--build-arg', `${argument}=${value}`]);
    words.push('--isolation', 'chroot', '--pull-never', '--volume', `${cache}:/npm`);
    try {
      this.run('build', ...words, '--file', dockerfile, '--tag', name, '.');
      return undefined;
    } catch (error) {
      const { stderr } = error as ExecFileException & { stderr: string };
      if (OFFLINE.test(stderr)) return 'the registry of packages is out of reach';
      throw new Error(`the image was not built:\n${stderr.slice(-3_000)}`);
    }
  }

  /** What whoever runs the image is told. */
  config(name: string): ImageConfig {
    const { OCIv1 } = JSON.parse(this.run('inspect', '--type', 'image', name)) as { OCIv1: { config: ImageConfig } };
    return OCIv1.config;
  }

  /** The command line that runs a command in a new container of an image, with directories mounted: host's to container's. */
  inContainer(name: string, command: readonly string[], volumes: Readonly<Record<string, string>> = {}): readonly string[] {
    const container = this.run('from', '--pull-never', name).trim();
    const mounts = Object.entries(volumes).flatMap(([host, inside]) => ['--volume', `${host}:${inside}:ro`]);
    return [...this.#store, 'run', '--isolation', 'chroot', ...mounts, container, '--', ...command];
  }

  run(...words: readonly string[]): string {
    const [program = '', ...own] = this.#store;
    return execFileSync(program, [...own, ...words], { encoding: 'utf8', stdio: 'pipe' });
  }

  #npm(...words: readonly string[]): string {
    return execFileSync('npm', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  }
}

function place(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, dereference: true });
}
