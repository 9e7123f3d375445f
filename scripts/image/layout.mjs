// An OCI image layout: a directory of blobs that container engines read.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipOf } from './gzip.mjs';
import { tarOf } from './tar.mjs';

const TYPE = (name) => `application/vnd.oci.image.${name}`;
/** Nothing in an image tells when it was made, so that the same sources give the same image. */
const CREATED = '1970-01-01T00:00:00Z';

export class Layout {
  #directory;
  #manifests = [];

  constructor(directory) {
    this.#directory = directory;
    mkdirSync(join(directory, 'blobs/sha256'), { recursive: true });
  }

  /** Adds the image of one architecture, and returns its digest. A layer is `{ directory, title }`; `config` is what a container is started with. */
  addImage(architecture, layers, config) {
    const written = layers.map(({ directory, title }) => {
      const tar = tarOf(directory);
      return { title, diffId: digestOf(tar), blob: this.#blob(gzipOf(tar), TYPE('layer.v1.tar+gzip')) };
    });
    const image = this.#json(TYPE('config.v1+json'), {
      created: CREATED,
      architecture,
      os: 'linux',
      ...(architecture === 'arm64' ? { variant: 'v8' } : {}),
      config,
      rootfs: { type: 'layers', diff_ids: written.map(({ diffId }) => diffId) },
      history: written.map(({ title }) => ({ created: CREATED, created_by: title })),
    });
    const manifest = this.#json(TYPE('manifest.v1+json'), {
      schemaVersion: 2,
      mediaType: TYPE('manifest.v1+json'),
      config: image,
      layers: written.map(({ blob }) => blob),
    });
    this.#manifests.push({ ...manifest, platform: { os: 'linux', architecture, ...(architecture === 'arm64' ? { variant: 'v8' } : {}) } });
    return manifest.digest;
  }

  /**
   * Tag `version` is for all architectures, from which an engine chooses its own; `version-amd64` and so on are single ones. containerd
   * knows an imported image by the name that a manifest of Kubernetes means when it says `name:version`.
   */
  close(name, version) {
    const all = this.#json(TYPE('index.v1+json'), { schemaVersion: 2, mediaType: TYPE('index.v1+json'), manifests: this.#manifests });
    const tagged = (descriptor, tag) => ({
      ...descriptor,
      annotations: { 'io.containerd.image.name': `docker.io/library/${name}:${tag}`, 'org.opencontainers.image.ref.name': tag },
    });
    const manifests = [
      tagged(all, version),
      ...this.#manifests.map((manifest) => tagged(manifest, `${version}-${manifest.platform.architecture}`)),
    ];
    const index = { schemaVersion: 2, mediaType: TYPE('index.v1+json'), manifests };
    writeFileSync(join(this.#directory, 'index.json'), `${JSON.stringify(index, null, 2)}\n`);
    writeFileSync(join(this.#directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}\n');
    return all.digest;
  }

  #json(mediaType, value) {
    return this.#blob(Buffer.from(JSON.stringify(value)), mediaType);
  }

  #blob(content, mediaType) {
    const digest = digestOf(content);
    writeFileSync(join(this.#directory, 'blobs', digest.replace(':', '/')), content);
    return { mediaType, digest, size: content.length };
  }
}

const digestOf = (content) => `sha256:${createHash('sha256').update(content).digest('hex')}`;
