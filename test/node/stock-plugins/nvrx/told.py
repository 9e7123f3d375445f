"""Prints what NVRx makes of the node, ten times a second, as one JSON object in a line. Argument: the socket."""
import json
import logging
import sys
import time
from unittest.mock import MagicMock

# Other parts of the package, and what they need, have no share in the check of the node.
for name in (
    "defusedxml",
    "defusedxml.ElementTree",
    "httpx",
    "nvidia_resiliency_ext.attribution",
    "nvidia_resiliency_ext.attribution.orchestration",
    "nvidia_resiliency_ext.attribution.orchestration.http_api",
    "nvidia_resiliency_ext.attribution.orchestration.progressive",
    "nvidia_resiliency_ext.shared_utils.profiling",
):
    sys.modules[name] = MagicMock()

from nvidia_resiliency_ext.shared_utils import health_check  # noqa: E402

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
health_check.logger.addHandler(handler)
health_check.logger.setLevel(logging.DEBUG)
health_check.logger.propagate = False

check = health_check.NodeHealthCheck(endpoint=sys.argv[1])
while True:
    said.clear()
    is_well = check()
    print(json.dumps({"isWell": is_well, "said": said[-1] if said else ""}), flush=True)
    time.sleep(0.1)
