"""Places that hold a lake or a report: a folder, or a prefix of an S3-compatible storage, behind one interface."""

from gpureport.store.bucket import Bucket
from gpureport.store.folder import Folder
from gpureport.store.storage import Found, ObjectAddress, Place, Reach, Storage, parse_place

__all__ = ["Bucket", "Folder", "Found", "ObjectAddress", "Place", "Reach", "Storage", "parse_place"]
