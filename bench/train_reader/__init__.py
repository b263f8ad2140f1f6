"""Training of the reader, the teacher of the encoder (`bench.tune_encoder`)."""
