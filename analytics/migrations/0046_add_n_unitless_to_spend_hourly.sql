-- Calls whose units nobody knows: with n_unpriced it says where a sum is NULL, also when prices were changed afterwards.
ALTER TABLE gnomon_core.spend_hourly ADD COLUMN IF NOT EXISTS `n_unitless` SimpleAggregateFunction(sum, UInt64) DEFAULT if(isNull(units), n, 0) AFTER `n_unpriced`
