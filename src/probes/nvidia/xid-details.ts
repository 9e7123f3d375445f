/** What the text of some Xids tells beyond their number. */
export interface XidDetails {
  /** For 94 and 95: what the driver says of a reset. */
  readonly resetRequired?: boolean;
  readonly nvlink?: NvlinkDetail;
  /** For 154: the number of the new recovery action, as NVML numbers it, and the driver's word for it. */
  readonly recoveryAction?: { readonly action: number; readonly word?: string };
}

/** What the lines of 144 to 150 tell. */
export interface NvlinkDetail {
  readonly unit: string;
  readonly isFatal: boolean;
  readonly subcode?: number;
  /** Absent when the error is of no single link. */
  readonly link?: number;
}

/** Reads the text after number and process for the Xids whose text decides what they mean. */
export function xidDetails(xid: number, text: string): XidDetails {
  if (xid === 94 || xid === 95) {
    const words = [...text.matchAll(/\b(?:D-)?RST: (Yes|No)\b/gi)].map(([, word = '']) => word.toLowerCase());
    return words.length === 0 ? {} : { resetRequired: words.includes('yes') };
  }
  if (xid >= 144 && xid <= 150) {
    const nvlink = nvlinkDetail(text);
    return nvlink === undefined ? {} : { nvlink };
  }
  return xid === 154 ? recoveryDetail(text) : {};
}

/** `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 …)`: the subcode is in bits 20 to 25 of the first word. */
function nvlinkDetail(text: string): NvlinkDetail | undefined {
  const match = /^(\S+) +(?:(non-?fatal)|(?:link )?(fatal))\b(.*)$/i.exec(text);
  if (match === null) return undefined;
  const [, unit = '', , fatal, rest = ''] = match;
  const link = /\bLink (-?\d+)/i.exec(rest)?.[1];
  const word = /\((0x[0-9a-f]+)/i.exec(rest)?.[1];
  return {
    unit,
    isFatal: fatal !== undefined,
    ...(word !== undefined && { subcode: (Number(word) >>> 20) & 0x3f }),
    ...(link !== undefined && Number(link) >= 0 && { link: Number(link) }),
  };
}

/** Words differ between drivers and sometimes contradict the number, which is NVML's. */
function recoveryDetail(text: string): XidDetails {
  const match = /\bto (0x[0-9a-f]+)(?: \(([^)]*)\))?/i.exec(text);
  if (match === null) return {};
  const [, action = '', word] = match;
  return { recoveryAction: { action: Number(action), ...(word !== undefined && { word }) } };
}
