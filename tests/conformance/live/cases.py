"""All cases, in the order in which they run."""

import cases_responder  # noqa: F401
import cases_initiator  # noqa: F401
import cases_fpdu  # noqa: F401
import cases_ddp  # noqa: F401
import cases_rdmap  # noqa: F401
import cases_ending  # noqa: F401
import cases_7306  # noqa: F401
from case import REGISTRY

ALL = REGISTRY
