"""Results of trials on disk: writing, reading, comparing and grading them again."""
