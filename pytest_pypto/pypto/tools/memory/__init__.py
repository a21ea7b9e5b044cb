"""What a memory map consists of: lifetimes read from a dump, boxes made of them, and the page that shows them."""
