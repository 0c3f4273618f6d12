-- What was charged before, oldest first, each with the run that had charged it (0 = when the call was stored).
ALTER TABLE gnomon_core.attempts ADD COLUMN IF NOT EXISTS `former_prices` Array(Tuple(repricing UInt32, units Nullable(Decimal(38, 12)), usd Nullable(Decimal(38, 12))))
