"""Files that mean harm, made when they are asked for: CASES of every module, by name."""
