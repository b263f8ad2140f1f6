"""Settings into stores and models, piece by piece; `build` puts the pieces together."""
