-- Which run of `gnomon rebuild --prices` gave units and usd (gnomon.repricings); 0 = charged when the call was stored.
ALTER TABLE gnomon_core.attempts ADD COLUMN IF NOT EXISTS `repricing` UInt32 CODEC(ZSTD(1))
