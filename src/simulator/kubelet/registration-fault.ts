/**
 * How a kubelet treats those who register: `slow` answers late, `hang` never, `refuse` with an error, `no-dial-back` says yes and asks for
 * nothing, `cut-stream` ends each stream after its first list, `double` dials back twice, `old-authority` sends the socket's path as
 * `:authority`, as kubelets up to 1.25 do.
 */
export type RegistrationFault =
  | { readonly kind: 'slow'; readonly delayMs: number }
  | { readonly kind: 'hang' }
  | { readonly kind: 'refuse'; readonly message: string }
  | { readonly kind: 'no-dial-back' }
  | { readonly kind: 'cut-stream' }
  | { readonly kind: 'double' }
  | { readonly kind: 'old-authority' };
