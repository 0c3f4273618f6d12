-- How far behind the head the block of a call lies, as vendors look at it who charge more for old blocks (of a range: its lower
-- end); NULL = not known, 0 for our own calls. Kept so that history can be priced again without the parameters. Rows from before
-- this column know the block they name and the head.
ALTER TABLE gnomon_core.attempts ADD COLUMN IF NOT EXISTS `blocks_behind` Nullable(UInt64) DEFAULT if(isNull(block_number) OR isNull(head_latest), NULL, toUInt64(greatest(block_number, head_latest) - block_number)) CODEC(ZSTD(1)) AFTER `head_latest`
