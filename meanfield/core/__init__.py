"""The foundation of all rooms: checks of arguments, errors, files written atomically."""
