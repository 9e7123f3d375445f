const LONGEST_NAME = 12;
const FORM = /^\d{8}-\d{6}-[\w.-]{1,64}$/;

/** `20261123-203015-<family>-GPU-5e1f0000`: sorts by time (UTC), and names the device. Only letters, digits, `.`, `_` and `-`. */
export function incidentId(
  timeMs: number,
  device: { readonly family: string; readonly id: string },
  isTaken: (id: string) => boolean,
): string {
  const [day = '', time = ''] = new Date(timeMs).toISOString().split('T');
  const name = [device.family, device.id].map((part) => part.replace(/[^\w.-]/g, '-').slice(0, LONGEST_NAME)).join('-');
  const id = `${day.replaceAll('-', '')}-${time.slice(0, 8).replaceAll(':', '')}-${name}`.replace(/[.-]+$/, '');
  let unique = id;
  for (let count = 1; isTaken(unique); count += 1) unique = `${id}-${count}`;
  return unique;
}

export const isIncidentId = (text: string): boolean => FORM.test(text);
