-- What the summary of an alert names beside its subject, so that a restart can tell of its end in the same words.
-- state: firing and resolved are told; pending and inactive are how the alert service knows where it was.
ALTER TABLE gnomon_core.alerts ADD COLUMN IF NOT EXISTS `labels` Map(String, String)
