-- question: Of what is nobody told?
-- grain: one row per silence
-- param to DateTime64(3) = now: those that end after it
-- param id String = '': only this one; empty = all
-- column silence_id String: its name
-- column rule String: a rule, or a pattern with * and ?
-- column subject String: a subject, or a pattern
-- column starts_at DateTime64(3, 'UTC') [UTC]: from then on
-- column ends_at DateTime64(3, 'UTC') [UTC]: until then, not included
-- column comment String: why
-- column author String: who
SELECT silence_id, rule, subject, starts_at, ends_at, comment, author
FROM gnomon.alert_silences
WHERE ends_at > {to:DateTime64(3)} AND ({id:String} = '' OR silence_id = {id:String})
ORDER BY starts_at, silence_id
LIMIT 1000
