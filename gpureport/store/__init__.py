"""Objects of an S3-compatible storage: where they lie, and reading, writing and listing them."""

from gpureport.store.address import ObjectAddress, Place, Reach, parse_place
from gpureport.store.bucket import Bucket, Found, Listed

__all__ = ["Bucket", "Found", "Listed", "ObjectAddress", "Place", "Reach", "parse_place"]
