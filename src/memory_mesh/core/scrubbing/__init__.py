"""The scrubber of RFC-0011: six stages that clean a text before it is stored."""
