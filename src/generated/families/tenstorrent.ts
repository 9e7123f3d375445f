// Written by `npm run generate` from families/tenstorrent.yaml. Not edited by hand.
export const declaration: object = {
  "family": "tenstorrent",
  "summary": "Tenstorrent accelerators",
  "proven": "Nothing of it was checked against hardware: no capture was available. Files, units and lines follow the source of the driver, tt-kmd at 4af71921. It does not say how often the heartbeat moves, so a minute is allowed. The ids of the Kubernetes plugin are not known.",
  "devices": [
    {
      "kind": "chip",
      "find": {
        "pci": {
          "vendor": "0x1e52",
          "devices": [
            "0x401e",
            "0xb140"
          ]
        }
      },
      "id": "{pci}",
      "facts": {
        "vendor": "Tenstorrent",
        "minor": {
          "entry": "tenstorrent/tenstorrent!#",
          "example": "{1}"
        },
        "model": {
          "file": "tenstorrent/tenstorrent!#/tt_card_type",
          "absent": [
            "unknown"
          ]
        },
        "serial": {
          "file": "tenstorrent/tenstorrent!#/tt_serial",
          "example": "000004013110000{1}"
        },
        "firmware": {
          "file": "tenstorrent/tenstorrent!#/tt_fw_bundle_ver",
          "example": "18.12.0.0"
        }
      },
      "nodes": [
        "/dev/tenstorrent/{minor}"
      ]
    }
  ],
  "bus": [
    {
      "kind": "chip",
      "vendor": "0x1e52",
      "devices": [
        "0x401e",
        "0xb140"
      ],
      "drivers": [
        "tenstorrent"
      ],
      "nodes": 1
    }
  ],
  "pcie": true,
  "hwmon": true,
  "readings": [
    {
      "metric": "device_clock_hertz",
      "file": "tenstorrent/tenstorrent!{minor}/tt_aiclk",
      "scale": 1000000,
      "labels": {
        "clock": "ai"
      },
      "example": 1350
    },
    {
      "metric": "device_clock_hertz",
      "file": "tenstorrent/tenstorrent!{minor}/tt_axiclk",
      "scale": 1000000,
      "labels": {
        "clock": "axi"
      },
      "example": 900
    },
    {
      "metric": "device_clock_hertz",
      "file": "tenstorrent/tenstorrent!{minor}/tt_arcclk",
      "scale": 1000000,
      "labels": {
        "clock": "arc"
      },
      "example": 540
    },
    {
      "metric": "device_tenstorrent_thermal_trips_total",
      "type": "counter",
      "help": "Times at which the firmware slowed the chip down because of its temperature. Blackhole has it.",
      "file": "tenstorrent/tenstorrent!{minor}/tt_therm_trip_count"
    }
  ],
  "conditions": [
    {
      "type": "FirmwareStopped",
      "severity": "fatal",
      "meaning": "The firmware of the chip does not move its heartbeat, so it manages neither power nor temperature and starts no work.",
      "remedy": "reset",
      "source": "tt-kmd docs/sysfs-attributes.md: tt_heartbeat changes while the firmware is alive",
      "file": "tenstorrent/tenstorrent!{minor}/tt_heartbeat",
      "still": "60s",
      "message": "the heartbeat of the firmware is {value}",
      "example": 17
    },
    {
      "type": "ThermalTrips",
      "severity": "degraded",
      "meaning": "The firmware slowed the chip down because of its temperature.",
      "remedy": "check-cooling",
      "source": "tt-kmd docs/sysfs-attributes.md: tt_therm_trip_count",
      "reading": "device_tenstorrent_thermal_trips_total",
      "growth": {
        "above": 0,
        "within": "1h"
      },
      "recovery": "10m"
    },
    {
      "type": "InitializationFailed",
      "severity": "fatal",
      "meaning": "The chip did not start.",
      "remedy": "reset",
      "source": "tt-kmd enumerate.c",
      "log": {}
    }
  ],
  "lines": [
    {
      "event": "initialization-failed",
      "drivers": [
        "tenstorrent"
      ],
      "text": "Device initialization failed",
      "means": "the driver could not initialize the chip",
      "source": "tt-kmd enumerate.c",
      "condition": "InitializationFailed"
    },
    {
      "event": "found",
      "drivers": [
        "tenstorrent"
      ],
      "text": "Found a Tenstorrent * device",
      "means": "the driver found the chip and starts it",
      "source": "tt-kmd enumerate.c",
      "ends": [
        "InitializationFailed"
      ]
    }
  ]
};
