"""The core: memories, tiles, number rules and the operations on them."""
