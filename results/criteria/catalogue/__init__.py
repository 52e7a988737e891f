"""Every criterion, one file each."""
