import type { PlaceName } from './frame.ts';

/** Directory or file on the machine for one place of a capture. */
export interface Place {
  readonly name: PlaceName;
  /** Absolute path, without a slash at its end. */
  readonly path: string;
}

/** Turns absolute paths of the machine into paths of a capture. A path outside all places has none. */
export class Places {
  readonly #places: readonly Place[];

  /** When two places contain a path, the place with the longer path is used. */
  constructor(places: readonly Place[]) {
    this.#places = places.filter(({ path }) => path !== '').sort((a, b) => b.path.length - a.path.length);
  }

  of(path: string): string | undefined {
    for (const place of this.#places) {
      if (path === place.path) return place.name;
      if (path.startsWith(`${place.path}/`)) return `${place.name}/${path.slice(place.path.length + 1)}`;
    }
    return undefined;
  }
}
