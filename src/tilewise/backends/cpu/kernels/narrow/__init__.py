"""Few numbers taken to a narrower dtype."""
