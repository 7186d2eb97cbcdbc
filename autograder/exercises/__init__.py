"""What the lessons ask: exercises, their points, and the verbs that notebooks call."""
