"""Software pipelines: copies of loop bodies that overlap in time, and the order of what is in them."""
