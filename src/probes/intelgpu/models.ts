/** Names of models, keyed by PCI device id. The driver does not tell them. Source: PCI ID repository, Intel's DRA driver. */
export const MODELS: Readonly<Record<string, string>> = {
  '0x0bd5': 'Data Center GPU Max 1550',
  '0x0bd6': 'Data Center GPU Max 1550',
  '0x0bd9': 'Data Center GPU Max 1100',
  '0x0bda': 'Data Center GPU Max 1100',
  '0x0bdb': 'Data Center GPU Max 1100',
  '0x56a0': 'Arc A770',
  '0x56a1': 'Arc A750',
  '0x56a2': 'Arc A580',
  '0x56a5': 'Arc A380',
  '0x56a6': 'Arc A310',
  '0x56b1': 'Arc Pro A40/A50',
  '0x56c0': 'Data Center GPU Flex 170',
  '0x56c1': 'Data Center GPU Flex 140',
  '0xe20b': 'Arc B580',
  '0xe20c': 'Arc B570',
  '0xe211': 'Arc Pro B60',
  '0xe212': 'Arc Pro B50',
};

/**
 * PCI device ids of the switches on Intel's discrete cards: upper and lower ports of the Arc A and B series. Root ports of Intel have the
 * same vendor id, so the vendor alone does not tell a switch on the card. Source: PCI ID repository.
 */
export const OWN_SWITCHES: ReadonlySet<string> = new Set(['0x4fa0', '0x4fa1', '0x4fa4', '0xe2f0', '0xe2f1', '0xe2ff']);
