"""Pure maths and the types every room shares: no I/O, no environment."""
