"""Places that hold a lake or a report: a folder, or a prefix of an S3-compatible storage, behind one interface."""

from gpureport.store.address import ObjectAddress, Place, Reach, parse_place
from gpureport.store.bucket import Bucket
from gpureport.store.folder import Folder
from gpureport.store.storage import Found, Listed, Storage

__all__ = ["Bucket", "Folder", "Found", "Listed", "ObjectAddress", "Place", "Reach", "Storage", "parse_place"]
