"""Tables that Python makes by the schedulers' rules from amounts summed in SQL."""

from __future__ import annotations

from gpureport.values.tables.table import DESCRIBED

QUOTA_NATIVE = DESCRIBED["day.quota_native"]
QUOTA_UNIT = DESCRIBED["day.quota_unit"]
QUOTA_SHARE = DESCRIBED["day.quota_share"]
QUOTA_LENDING = DESCRIBED["day.quota_lending"]
QUOTA_WEIGHTED_SHARE = DESCRIBED["day.quota_weighted_share"]
QUOTA_POD_LABEL = DESCRIBED["day.quota_pod_label"]
QUOTA_EXPOSURE = DESCRIBED["day.quota_exposure"]
