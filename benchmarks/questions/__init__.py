"""What a careful engineer asks of a healthy system: the questions of `benchmarks.twenty_questions`."""
