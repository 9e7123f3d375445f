/** Prometheus did not answer, or its answer is not to be believed. The message says the cause. */
export class PrometheusTrouble extends Error {
  /** What to do next. */
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.name = 'PrometheusTrouble';
    this.remedy = remedy;
  }
}

const STATUSES: Readonly<Record<number, readonly [cause: string, remedy: string]>> = {
  401: ['it does not accept the credentials', 'Check --token-file, or the certificate of --cert-file.'],
  403: ['the credentials have no right to this', 'Give them the right to query, and check --tenant.'],
  404: ['there is no query API at this address', 'Add the path before /api/v1 to --prometheus, such as /prometheus.'],
  422: ['it cannot evaluate the query', 'Load deploy/rules.yaml, and see --query.max-samples and --query.timeout of Prometheus.'],
  429: ['it takes no more queries now', 'Raise its limit of queries for this tenant.'],
  503: ['it is not ready, or aborted the query', 'Wait until Prometheus has started, and see its log.'],
};

/** An answer with a status other than 200. `error`: what a Prometheus said itself. */
export function refusal(status: number, error: string | undefined): PrometheusTrouble {
  if (status >= 300 && status < 400)
    return new PrometheusTrouble(
      `it redirects (status ${status}): a proxy asks for a login, or the address is another one`,
      'Give the address behind the proxy, or --token-file.',
    );
  const [cause, remedy] = STATUSES[status] ?? ['it refuses the query', 'See the log of Prometheus, or of the proxy before it.'];
  return new PrometheusTrouble(`${cause} (status ${status}${error === undefined ? '' : `: ${error}`})`, remedy);
}

export const notPrometheus = (what: string): PrometheusTrouble =>
  new PrometheusTrouble(
    `${what}: another program answers there, or the login page of a proxy`,
    'Check the address of --prometheus, and the credentials.',
  );

export const unreachable = (message: string): PrometheusTrouble =>
  new PrometheusTrouble(`it does not answer: ${message}`, 'Check the address of --prometheus, and that Prometheus runs.');
