export function documentHtml(text: string): string;
