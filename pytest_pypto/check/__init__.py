"""Numbers only: tolerance policy, comparison, ulp distance, and where the differences lie."""
