"""How hosts come to be: containers of one node image, found again by their labels."""
