import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';

/** The name has the version number, because newer driver packages have no link without it. */
export const SONAME = 'libnvidia-ml.so.1';

/** Folders below each driver root. Source: the lists of the GPU operator, the DRA driver and GPUd. */
const FOLDERS = [
  '',
  'usr/lib64',
  'usr/lib/x86_64-linux-gnu',
  'usr/lib/aarch64-linux-gnu',
  'lib64',
  'lib/x86_64-linux-gnu',
  'lib/aarch64-linux-gnu',
  'usr/lib/x86_64-linux-gnu/nvidia/current',
  'usr/lib/aarch64-linux-gnu/nvidia/current',
  'usr/lib/aarch64-linux-gnu/nvidia',
  'cm/local/apps/cuda/libs/current/lib64',
];
/** Roots: the driver container of the GPU operator, as host and pods see it; then the host mounted into a pod. */
const DRIVER_ROOTS = ['/', '/run/nvidia/driver', '/driver-root', '/host'];
/** Folders that contain only the library: GKE, as pods and as the host see it; WSL. */
const LIBRARY_FOLDERS = ['/usr/local/nvidia/lib64', '/home/kubernetes/bin/nvidia/lib64', '/usr/lib/wsl/lib'];
const WSL_STORE = '/usr/lib/wsl/drivers';

/**
 * Returns the files to try, best first. Tests set `root` to replace the machine's root. The list does not contain the soname, which
 * the linker searches.
 */
export function libraryCandidates(root = '/'): readonly string[] {
  const below = (path: string): string => join(root, path);
  const folders = [
    ...DRIVER_ROOTS.flatMap((driverRoot) => FOLDERS.map((folder) => ({ driverRoot: below(driverRoot), folder }))),
    ...[...LIBRARY_FOLDERS, ...wslStores(below(WSL_STORE))].map((folder) => ({ driverRoot: root, folder })),
  ];
  const found = folders.flatMap(({ driverRoot, folder }) => {
    const file = resolveWithin(driverRoot, join(folder, SONAME));
    return file === undefined ? [] : [file];
  });
  return [...new Set(found)];
}

function wslStores(store: string): readonly string[] {
  try {
    return readdirSync(store).map((name) => join(WSL_STORE, name));
  } catch {
    return [];
  }
}

/** Maximum number of links that the kernel follows. More links mean a cycle. */
const MAX_LINKS = 40;

/** Resolves a path below another root, to which its absolute links are relative. Returns undefined when the file does not exist. */
export function resolveWithin(root: string, path: string): string | undefined {
  const rest = path.split('/').filter((name) => name !== '');
  let at = '/';
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = normalize(join(at, name));
    const target = linkAt(join(root, next));
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return undefined;
    rest.unshift(
      ...resolve(dirname(next), target)
        .split('/')
        .filter((part) => part !== ''),
    );
    at = '/';
  }
  const file = join(root, at);
  return existsSync(file) ? file : undefined;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}
