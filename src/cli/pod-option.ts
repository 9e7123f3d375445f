import { UserError } from '../errors.ts';
import { isLabel } from '../model/claim-hardware.ts';

/** Form of the name of a pod: a subdomain of DNS (RFC 1123). */
const POD = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Splits `NAMESPACE/NAME`. Throws {@link UserError} for another form. `flag`: where it was given. */
export function podOption(text: string, flag = '--pod'): { readonly namespace: string; readonly pod: string } {
  const [namespace = '', pod = '', ...rest] = text.split('/');
  if (!isLabel(namespace) || !POD.test(pod) || rest.length > 0)
    throw new UserError('flag-invalid', {
      flag,
      problem: 'must be the namespace and the name of a pod, such as training/worker-0',
    });
  return { namespace, pod };
}
