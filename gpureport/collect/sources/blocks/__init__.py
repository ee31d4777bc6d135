"""Blocks of Prometheus' storage, as a server's snapshot folder, Thanos, Mimir and Cortex have them → raw series."""

from gpureport.collect.sources.blocks.reading import Block, blocks_of, read_block

__all__ = ["Block", "blocks_of", "read_block"]
