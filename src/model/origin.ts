/**
 * Who decides what a family says, the most trusted first: the code of the program, a declaration of its package, a declaration that only
 * the administrator can change, a declaration that other users can change.
 */
export const ORIGINS = ['code', 'package', 'administrator', 'others'] as const;
export type Origin = (typeof ORIGINS)[number];
