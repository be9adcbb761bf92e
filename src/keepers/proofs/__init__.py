"""How near a selection is to the best of its size: bounds, certificates, the best set itself."""
