import type { Host } from '../../host/host.ts';
import { mayHaveCard } from '../kit/drm/presence.ts';

/** Returns true when a graphics device belongs to a driver of AMD, when its driver is unknown, or when the class cannot be listed. */
export const isPresent = ({ sys }: Host): boolean => mayHaveCard(sys, ['amdgpu', 'radeon']);
