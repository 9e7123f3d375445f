/** A text as a string of PromQL. Names come from addresses that people follow: they must not end the string. */
export const quoted = (text: string): string => `"${text.replace(/[\\"\n]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`))}"`;
