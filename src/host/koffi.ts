import { createRequire } from 'node:module';
import type koffiModule from 'koffi';

/** The module that calls functions of C libraries, for those who cannot wait for a promise. Throws where its native part does not load. */
export const requireKoffi = (): typeof koffiModule => createRequire(import.meta.url)('koffi');
