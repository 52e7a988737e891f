"""The kinds of fault: one module for each, with one class, called FAULT."""
