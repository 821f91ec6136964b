"""What every room stands on: checks of arguments, errors, files that are written whole."""
