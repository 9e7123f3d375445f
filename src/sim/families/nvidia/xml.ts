/** Elements and texts of an XML document, keyed by name. */
export interface Tree {
  readonly [name: string]: string | Tree | readonly Tree[];
}

/** Returns the lines of one element. */
export function element(name: string, attributes: string, children: Tree): string {
  return `\t<${name}${attributes === '' ? '' : ` ${attributes}`}>\n${content(children)}\t</${name}>\n`;
}

function content(children: Tree): string {
  return Object.entries(children)
    .map(([name, child]) => {
      if (typeof child === 'string') return `\t\t<${name}>${child}</${name}>\n`;
      const list: readonly Tree[] = Array.isArray(child) ? child : [child as Tree];
      return list.map((each) => element(name, '', each)).join('');
    })
    .join('');
}
