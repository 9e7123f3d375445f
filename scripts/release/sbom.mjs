// Bills of materials by CycloneDX 1.6, as JSON.
const HASHES = { sha256: 'SHA-256', sha512: 'SHA-512' };

/** `subject` is what consists of the components: `{ type, name, version, license, purl, digest }`. `time` is in seconds. */
export function sbomOf(subject, components, time) {
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { timestamp: new Date(time * 1_000).toISOString(), component: subject },
    components: components.toSorted((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
  };
}

/** A component of a type of CycloneDX: a package of packages.mjs, or anything with a name and a version. */
export function componentOf(type, { name, version, purl, cpe, digest, license, licenseNames }) {
  const licenses = license === undefined ? licenseNames?.map((each) => ({ license: { name: each } })) : [{ expression: license }];
  return {
    type,
    'bom-ref': purl ?? `${name}@${version}`,
    name,
    version,
    ...(digest === undefined ? {} : { hashes: [{ alg: HASHES[digest.algorithm], content: digest.hex }] }),
    ...(licenses === undefined ? {} : { licenses }),
    ...(cpe === undefined ? {} : { cpe }),
    ...(purl === undefined ? {} : { purl }),
  };
}
