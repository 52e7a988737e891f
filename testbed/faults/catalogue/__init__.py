"""Every kind of fault, one file each with one class, called FAULT."""
