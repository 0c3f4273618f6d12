-- Of no use whatever it cost: null beyond the head, lost race, duplicate. is_wasted is this and paid for, and follows the price.
ALTER TABLE gnomon_core.attempts ADD COLUMN IF NOT EXISTS `is_useless` Bool DEFAULT is_wasted AFTER `is_duplicate`
