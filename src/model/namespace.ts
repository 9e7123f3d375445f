/** Form of a namespace of Kubernetes: a label of DNS (RFC 1123). */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const isNamespace = (text: string): boolean => NAMESPACE.test(text);
