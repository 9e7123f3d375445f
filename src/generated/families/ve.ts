// Written by `npm run generate` from families/ve.yaml. Not edited by hand.
export const declaration: object = {
  "family": "ve",
  "summary": "NEC Vector Engine (SX-Aurora TSUBASA) cards",
  "proven": "Presence only, and not checked against hardware: neither a capture nor a description of its files was available. The PCI id follows the PCI ID repository.",
  "devices": [
    {
      "kind": "card",
      "find": {
        "pci": {
          "vendor": "0x1bcf"
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "NEC"
      }
    }
  ],
  "pcie": true
};
