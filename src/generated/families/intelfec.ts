// Written by `npm run generate` from families/intelfec.yaml. Not edited by hand.
export const declaration: object = {
  "family": "intelfec",
  "summary": "Intel vRAN accelerators (ACC100, VRB1, VRB2)",
  "proven": "Presence only, and not checked against hardware: no capture was available. PCI ids follow DPDK (drivers/baseband/acc), names of resources and drivers the SRIOV-FEC operator of Intel, whose plugin gives the addresses of virtual functions.",
  "devices": [
    {
      "kind": "pf",
      "find": {
        "pci": {
          "vendor": "0x8086",
          "devices": [
            "0x0d5c",
            "0x57c0",
            "0x57c2"
          ]
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "Intel",
        "model": {
          "file": "device",
          "map": {
            "0x0d5c": "ACC100",
            "0x57c0": "VRB1",
            "0x57c2": "VRB2"
          }
        }
      }
    },
    {
      "kind": "vf",
      "find": {
        "pci": {
          "vendor": "0x8086",
          "devices": [
            "0x0d5d",
            "0x57c1",
            "0x57c3"
          ]
        }
      },
      "id": "{pci}",
      "parent": "{physicalFunction}",
      "facts": {
        "vendor": "Intel",
        "model": {
          "file": "device",
          "map": {
            "0x0d5d": "ACC100",
            "0x57c1": "VRB1",
            "0x57c3": "VRB2"
          }
        },
        "physicalFunction": {
          "link": "physfn"
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
      "kind": "pf",
      "vendor": "0x8086",
      "devices": [
        "0x0d5c",
        "0x57c0",
        "0x57c2"
      ],
      "drivers": [
        "pci-pf-stub",
        "vfio-pci",
        "igb_uio"
      ]
    }
  ],
  "pcie": true,
  "inherit": true,
  "resources": [
    {
      "resource": "intel.com/intel_fec_*",
      "kinds": [
        "vf"
      ],
      "ids": [
        "{pciAddress}"
      ]
    },
    {
      "resource": "intel.com/intel_vrb_*",
      "kinds": [
        "vf"
      ],
      "ids": [
        "{pciAddress}"
      ]
    }
  ]
};
