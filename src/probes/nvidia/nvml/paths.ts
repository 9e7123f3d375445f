import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';

/** Newer driver packages ship no link without the number. */
export const SONAME = 'libnvidia-ml.so.1';

/** Below each root of a driver. Source: the lists of the GPU operator, the DRA driver and GPUd. */
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
/** The driver container of the GPU operator, as host and as its pods see it; then the host itself mounted into a pod. */
const DRIVER_ROOTS = ['/', '/run/nvidia/driver', '/driver-root', '/host'];
/** Folders with the library alone: GKE as pods and as the host see it, WSL. */
const LIBRARY_FOLDERS = ['/usr/local/nvidia/lib64', '/home/kubernetes/bin/nvidia/lib64', '/usr/lib/wsl/lib'];
const WSL_STORE = '/usr/lib/wsl/drivers';

/**
 * Files to try, best first. `root` stands for the machine's root in tests. The soname itself, which the linker looks up, is not in
 * the list.
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

/** More links than the kernel follows are a circle. */
const MOST_LINKS = 40;

/** The file behind a path below a foreign root, whose absolute links are meant from that root; undefined when there is none. */
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
    if (links > MOST_LINKS) return undefined;
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
