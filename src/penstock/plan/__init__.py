"""The immutable plan tree and its notation."""

from penstock.plan.notation import read, write
from penstock.plan.plan import Join, Leaf, Node, Plan, block_of, walk
from penstock.plan.stream_set import StreamSet

__all__ = ["Join", "Leaf", "Node", "Plan", "StreamSet", "block_of", "read", "walk", "write"]
