"""Groups of rows: products of uneven sizes in one launch, as layers of mixture-of-experts models need them."""
