import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SYSTEMD = '/usr/lib/systemd/systemd';

/** Why no systemd can be booted here; undefined when one can. */
export function whyNoSystemd(): string | undefined {
  if (!existsSync(SYSTEMD)) return `there is no ${SYSTEMD}`;
  if (process.getuid?.() !== 0) return 'it takes root';
  return spawnSync('unshare', ['--version']).error === undefined ? undefined : 'there is no unshare';
}

/** Moves this shell and what it starts into a cgroup of its own in each hierarchy, whose folders it lists in `$1/cgroups`. */
const OWN_CGROUP = `
  while IFS=: read -r id controllers path; do
    [ -n "$controllers" ] || continue
    folder=/sys/fs/cgroup/\${controllers#name=}\${path%/}/systemd-$$
    mkdir -p "$folder"; echo "$folder" >> "$1/cgroups"
    if [ "$controllers" = cpuset ]; then for file in cpuset.cpus cpuset.mems; do cat "$folder/../$file" > "$folder/$file"; done; fi
  done < /proc/self/cgroup
  while read -r folder; do echo $$ > "$folder/cgroup.procs"; done < "$1/cgroups"
  exec unshare --mount --uts --ipc --net --cgroup --pid --fork --kill-child=KILL --propagation slave -- bash -ec "$2" boot "$1"`;

/**
 * The root of the machine below an overlay, so that what is written goes to memory. It has none of its services, and folders of `$1/binds`
 * are mounted. What is in /run, /tmp and /dev is its own.
 */
const BOOT = `
  ip link set lo up
  work=$1/overlay; mkdir -p "$work"; mount -t tmpfs work "$work"; mkdir "$work/up" "$work/work" "$work/root"; root=$work/root
  mount -t overlay -o "lowerdir=/,upperdir=$work/up,workdir=$work/work" overlay "$root"
  mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"
  mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
  while IFS=: read -r id controllers path; do
    [ -n "$controllers" ] || continue
    case $controllers in name=*) options=none,$controllers;; *) options=$controllers;; esac
    folder=$root/sys/fs/cgroup/\${controllers#name=}; mkdir "$folder"; mount -t cgroup -o "$options" cgroup "$folder"
  done < /proc/self/cgroup
  for name in dev run tmp; do mount -t tmpfs -o mode=755 "$name" "$root/$name"; done
  for name in null zero full random urandom tty; do cp -a "/dev/$name" "$root/dev/"; done
  ln -s /proc/self/fd "$root/dev/fd"; : > "$root/dev/console"
  rm -rf "$root"/etc/systemd/system/*.wants
  while read -r from to; do mkdir -p "$root$to"; mount --rbind "$from" "$root$to"; done < "$1/binds"
  cd "$root"; mkdir old; pivot_root . old; umount -l /old
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin ${SYSTEMD} --system --unit=multi-user.target --log-target=console`;

/** The systemd of this machine, booted as the first process of namespaces of its own. Its network has the loopback and nothing else. */
export class BootedSystemd {
  readonly #directory: string;
  #process: ChildProcess | undefined;

  /** `directory` is for its own files. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** `binds` are folders of the machine, by the path at which the booted system has them. */
  async start(binds: Readonly<Record<string, string>>): Promise<void> {
    mkdirSync(this.#directory, { recursive: true });
    const lines = Object.entries(binds).map(([inside, outside]) => `${outside} ${inside}\n`);
    writeFileSync(join(this.#directory, 'binds'), lines.join(''));
    writeFileSync(join(this.#directory, 'cgroups'), '');
    let log = '';
    this.#process = spawn('bash', ['-ec', OWN_CGROUP, 'own-cgroup', this.#directory, BOOT], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) stream?.on('data', (chunk) => (log += String(chunk)));
    for (let attempt = 0; attempt < 150; attempt += 1) {
      if (this.#process.exitCode !== null) break;
      const state = await this.run('systemctl is-system-running').catch((error: { stdout?: string }) => error.stdout ?? '');
      if (/^(?:running|degraded)/.test(state)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`systemd did not come up:\n${log.slice(-3_000)}`);
  }

  /** Runs a script of the shell in it, and gives what it printed. */
  async run(script: string, directory = '/'): Promise<string> {
    const enter = ['-t', this.#first(), '-m', '-u', '-i', '-n', '-p', '-C', '--'];
    const { stdout } = await run('nsenter', [...enter, 'bash', '-ec', `cd ${directory}\n${script}`], { maxBuffer: 64 << 20 });
    return stdout;
  }

  /** Ends it and all that runs in it, and removes its cgroups. */
  async stop(): Promise<void> {
    const process_ = this.#process;
    if (process_ !== undefined && process_.exitCode === null) {
      const ended = new Promise((resolve) => process_.once('exit', resolve));
      process_.kill('SIGKILL');
      await ended;
    }
    for (const folder of readFileSync(join(this.#directory, 'cgroups'), 'utf8').trim().split('\n')) {
      // The kernel takes a moment to forget the last process.
      const remove = `for n in $(seq 50); do find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; [ -d "$1" ] || exit 0; sleep 0.1; done`;
      spawnSync('bash', ['-c', remove, 'remove', folder]);
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** The first process of its namespaces, as this machine numbers it. */
  #first(): string {
    const pid = this.#process?.pid;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  }
}
