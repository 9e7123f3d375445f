// Packages of npm and of Debian, by their ordinary clients, for a platform that need not be this machine's.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DEBIAN_SOURCES = '/etc/apt/sources.list.d/debian.sources';

/** Unpacks an npm package into a directory. Its content must be the one that was pinned. */
export function unpackNpm({ name, version, integrity }, directory) {
  const packed = join(directory, 'packed');
  mkdirSync(packed, { recursive: true });
  run('npm', ['pack', '--loglevel=error', '--pack-destination', packed, `${name}@${version}`], 'npm');
  const [file = ''] = readdirSync(packed);
  const found = `sha512-${createHash('sha512')
    .update(readFileSync(join(packed, file)))
    .digest('base64')}`;
  if (found !== integrity) throw new Error(`${name}@${version} is not the package that was pinned: it has ${found}, not ${integrity}`);
  run('tar', ['-xzf', join(packed, file), '-C', directory], 'tar');
  return join(directory, 'package');
}

/**
 * Unpacks Debian packages into `directory/root`. They are those in the folder `packed`; when it is not there, apt fetches the newest into
 * it and checks their signatures. Returns of each package its name, version and architecture, its file, its control file and its copyright.
 */
export function unpackDebian(names, architecture, directory, packed) {
  mkdirSync(join(directory, 'root'), { recursive: true });
  if (!existsSync(packed)) fetchDebian(names, architecture, directory, packed);
  const files = readdirSync(packed).map((each) => join(packed, each));
  for (const file of files) run('dpkg-deb', ['--extract', file, join(directory, 'root')], 'dpkg-deb');
  const packages = files.map((file) => {
    const control = run('dpkg-deb', ['--field', file], 'dpkg-deb');
    const field = (name) => new RegExp(`^${name}: (.+)$`, 'm').exec(control)?.[1];
    const name = field('Package');
    const copyright = readFileSync(join(directory, 'root/usr/share/doc', name, 'copyright'), 'utf8');
    return { name, version: field('Version'), architecture: field('Architecture'), file, control, copyright };
  });
  const found = packages.map((each) => `${each.name} for ${each.architecture}`);
  const missing = names.filter((name) => !found.includes(`${name} for ${architecture}`));
  if (missing.length > 0 || found.length !== names.length)
    throw new Error(
      `${packed} must have the Debian packages ${names.join(', ')} for ${architecture} and no other: it has ${found.join(', ')}`,
    );
  return packages;
}

/** apt's state is a private one, so that it takes no root and the machine's own packages stay as they are. */
function fetchDebian(names, architecture, directory, packed) {
  for (const folder of ['state/lists/partial', 'cache/archives/partial']) mkdirSync(join(directory, folder), { recursive: true });
  mkdirSync(packed, { recursive: true });
  const settings = {
    'Dir::State': join(directory, 'state'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(directory, 'cache'),
    // Only Debian's archive: other sources of a machine have nothing that is needed here.
    ...(existsSync(DEBIAN_SOURCES) ? { 'Dir::Etc::sourcelist': DEBIAN_SOURCES, 'Dir::Etc::sourceparts': '-' } : {}),
    'APT::Architecture': architecture,
    'APT::Architectures::': architecture,
    'APT::Sandbox::User': '',
  };
  const words = ['-qq', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
  run('apt-get', [...words, 'update'], 'apt-get');
  run('apt-get', [...words, 'download', ...names], 'apt-get', packed);
}

function run(program, words, name, cwd) {
  try {
    return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], cwd });
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(`there is no ${name}: make the image on Debian, or build deploy/Dockerfile`);
    throw new Error(`${name} failed, ${words.slice(-2).join(' ')}:\n${error.stderr}`);
  }
}
