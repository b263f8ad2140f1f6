"""What is asked of language models: each prompt beside the type and the reader of its answer."""
