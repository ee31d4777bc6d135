"""A lake and a report on object storage, against real S3 servers."""
