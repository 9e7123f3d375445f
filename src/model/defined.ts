/** The same members, without those whose value is undefined. */
export type Defined<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Leaves out the members that are undefined: an optional member is absent, and never present with the value undefined. */
export function defined<const T extends object>(members: T): Defined<T> {
  const result: { [K in keyof T]?: T[K] } = {};
  for (const name in members) if (members[name] !== undefined) result[name] = members[name];
  return result as unknown as Defined<T>;
}
