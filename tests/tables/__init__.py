"""Tables and bare metadata, as clients see them."""
