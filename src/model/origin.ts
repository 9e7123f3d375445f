/** Who decides what a family says, the first one first: the code of the program, a declaration of its package, one of the administrator. */
export const ORIGINS = ['code', 'package', 'administrator'] as const;
export type Origin = (typeof ORIGINS)[number];
