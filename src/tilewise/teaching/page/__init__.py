"""The learners' page: a traced run as one HTML file to step through, as SVG pictures, and as notebook output."""
