"""Objects of an S3-compatible storage: where they lie, and reading, writing and listing them."""

from gpureport.store.address import ObjectAddress, Place, Reach, parse_place
from gpureport.store.bucket import Bucket, Found, Listed
from gpureport.store.credentials import KEYS

__all__ = ["KEYS", "Bucket", "Found", "Listed", "ObjectAddress", "Place", "Reach", "parse_place"]
