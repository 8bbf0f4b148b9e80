[No samples collected]
