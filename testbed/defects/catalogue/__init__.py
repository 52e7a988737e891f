"""The defects: one module for each, found because it is here. `java/` has the class that does what it says."""
