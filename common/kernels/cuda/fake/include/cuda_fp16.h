#error "half is not here: use float, and float2 for half2."
