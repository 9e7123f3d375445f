// Written by `npm run generate` from families/tpu.yaml. Not edited by hand.
export const declaration: object = {
  "family": "tpu",
  "summary": "Google TPU accelerators",
  "proven": "Presence only, and not checked against hardware: no capture was available. The PCI ids follow Google's tpu_info. The ids of the plugin for google.com/tpu are not known, so no pod is joined by them.",
  "devices": [
    {
      "kind": "chip",
      "find": {
        "pci": {
          "vendor": "0x1ae0",
          "devices": [
            "0x0027",
            "0x005e"
          ]
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "Google",
        "model": {
          "file": "device",
          "map": {
            "0x0027": "TPU v2 or v3",
            "0x005e": "TPU v4"
          }
        },
        "minor": {
          "entry": "accel/accel#"
        }
      },
      "aliases": [
        "accel{minor}"
      ],
      "nodes": [
        "/dev/accel{minor}"
      ]
    },
    {
      "kind": "chip",
      "find": {
        "pci": {
          "vendor": "0x1ae0",
          "devices": [
            "0x0062",
            "0x0063",
            "0x006f",
            "0x0076"
          ]
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "Google",
        "model": {
          "file": "device",
          "map": {
            "0x0062": "TPU v5p",
            "0x0063": "TPU v5e",
            "0x006f": "TPU v6e",
            "0x0076": "TPU v7x"
          }
        },
        "minor": {
          "link": "iommu_group"
        }
      },
      "nodes": [
        "/dev/vfio/{minor}",
        "/dev/vfio/vfio"
      ]
    }
  ],
  "bus": [
    {
      "kind": "chip",
      "vendor": "0x1ae0",
      "devices": [
        "0x0027",
        "0x005e"
      ],
      "nodes": 1,
      "wanted": true
    },
    {
      "kind": "chip",
      "vendor": "0x1ae0",
      "devices": [
        "0x0062",
        "0x0063",
        "0x006f",
        "0x0076"
      ],
      "drivers": [
        "vfio-pci"
      ],
      "nodes": 2,
      "wanted": true
    }
  ],
  "pcie": true
};
