"""Release and grade with nbgrader."""
