-- Of each proxy process, the greatest number of an event of it below next: an event that a shipper sends again is known by it.
ALTER TABLE gnomon_core.sink_progress ADD COLUMN IF NOT EXISTS `procs` SimpleAggregateFunction(maxMap, Map(String, UInt64))
