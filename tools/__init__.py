"""The tools a model is given, one file each; written as any user's tool is."""
