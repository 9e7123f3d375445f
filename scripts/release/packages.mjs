// How lists of parts name a package, and the digest that pins it. A package URL tells the registry, and no address of a server.

/** An npm package, by its name and its entry in package-lock.json or one like it. */
export function npmPackage(name, { version, integrity, license }) {
  const [, base64] = /^sha512-(.+)$/.exec(integrity);
  return {
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    digest: { algorithm: 'sha512', hex: Buffer.from(base64, 'base64').toString('hex') },
    license,
  };
}

/** A Debian package, whose file has this SHA-256, for a version of Debian. */
export function debianPackage({ name, version, architecture, copyright }, hex, distribution) {
  return {
    name,
    version,
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-${distribution}`,
    digest: { algorithm: 'sha256', hex },
    licenseNames: licenseNames(copyright),
  };
}

/** Licences that the copyright file of a Debian package names: by a field of the machine-readable form, or by the text that it refers to. */
function licenseNames(copyright) {
  const fields = [...copyright.matchAll(/^License: *(\S.*)$/gm)].map(([, name]) => name.trim());
  const texts = [...copyright.matchAll(/\/usr\/share\/common-licenses\/([\w.+-]*\w)/g)].map(([, name]) => name);
  return [...new Set([...fields, ...texts])].sort();
}
