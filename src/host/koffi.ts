import { createRequire } from 'node:module';
import type koffiModule from 'koffi';

/** Loads synchronously the module that calls functions of C libraries. Throws when its native part does not load. */
export const requireKoffi = (): typeof koffiModule => createRequire(import.meta.url)('koffi');
