import { type Device, deviceKey } from '../model/device.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { AcceptAnswer, AcceptRequest } from '../server/control/control-socket.ts';
import type { HealthService } from './health.ts';

/** Ends conditions that no reading can confirm, and judges again at once. */
export function acceptCondition(
  { device: wanted, condition, why }: AcceptRequest,
  snapshot: Snapshot | undefined,
  health: HealthService,
  assemble: () => void,
): AcceptAnswer {
  const found = (snapshot?.devices ?? []).filter(({ key, device: { id, aliases, uuid } }) =>
    [key, id, uuid, ...aliases].some((name) => name?.toLowerCase() === wanted.toLowerCase()),
  );
  const [state, other] = found;
  if (state === undefined) return acceptAbsence(wanted, why, health, assemble);
  if (other !== undefined) return { refused: `several devices are called ${wanted}: ${found.map(({ key }) => key).join(', ')}` };
  const accepted = health.engine.accept(state.key, condition, why);
  if (accepted.length === 0)
    return {
      refused: `${state.key} has no unverified condition${condition === undefined ? '' : ` ${condition}`}; a condition that is read ends with its cause`,
    };
  assemble();
  return { device: state.key, accepted };
}

/** Accepts that a device which was out of service does not return: it was removed, for example. */
function acceptAbsence(wanted: string, why: string, health: HealthService, assemble: () => void): AcceptAnswer {
  const names = ({ family, id, uuid, aliases }: Device): readonly (string | undefined)[] => [`${family}/${id}`, id, uuid, ...aliases];
  const found = health.engine.unreturned().find((device) => names(device).some((name) => name?.toLowerCase() === wanted.toLowerCase()));
  if (found === undefined) return { refused: `there is no device ${wanted}` };
  const accepted = health.engine.accept(deviceKey(found), undefined, why);
  assemble();
  return { device: deviceKey(found), accepted };
}
