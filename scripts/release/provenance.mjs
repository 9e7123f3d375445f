// Where a release comes from: an in-toto statement with a predicate of SLSA provenance 1.0.

/** It is no address, but the name of what `npm run release` does. Change its number when the same parameters mean something else. */
const BUILD_TYPE = 'urn:device-agent:npm-run-release:1';

/**
 * `subjects` are `{ name, hex }` with the SHA-256 of each, `inputs` are packages of packages.mjs. `builder` is the URI that whoever makes
 * the release gives to the place where it is made.
 */
export function provenanceOf({ subjects, commit, inputs, parameters, builder }) {
  const packages = inputs.toSorted((a, b) => (a.purl < b.purl ? -1 : 1));
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, hex }) => ({ name, digest: { sha256: hex } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: parameters,
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: commit } },
          ...packages.map(({ purl, digest }) => ({ uri: purl, digest: { [digest.algorithm]: digest.hex } })),
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  };
}
