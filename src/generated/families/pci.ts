// Written by `npm run generate` from families/pci.yaml. Not edited by hand.
export const declaration: object = {
  "family": "pci",
  "summary": "PCI functions that a plugin hands out by address",
  "enabled": false,
  "proven": "Link, NUMA node and AER counters were checked against the files of two functions in the fixtures of node_exporter, an NVMe drive and a network card; their AER counters are all 0.",
  "devices": [
    {
      "kind": "function",
      "find": {
        "pci": {
          "functions": "physical"
        }
      },
      "id": "{pci}",
      "facts": {
        "minor": {
          "link": "iommu_group"
        }
      }
    },
    {
      "kind": "vf",
      "find": {
        "pci": {
          "functions": "virtual"
        }
      },
      "id": "{pci}",
      "parent": "{physicalFunction}",
      "facts": {
        "physicalFunction": {
          "link": "physfn"
        },
        "minor": {
          "link": "iommu_group"
        }
      }
    }
  ],
  "pcie": true
};
