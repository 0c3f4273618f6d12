-- question: What has fired and what has resolved?
-- grain: one row per change of a rule and subject, the newest first
-- param from DateTime64(3) = now-7d: start of the range, included
-- param to DateTime64(3) = now: end of the range, not included
-- param before_rule String = '': with the other before_…, where a page begins at the instant `to`
-- param before_subject String = '': see before_rule
-- param before_state String = '': see before_rule
-- param rule String = '': only this rule; empty = all
-- param subject String = '': only this subject; empty = all
-- param state String = '': firing or resolved; empty = both
-- param limit UInt32 = 100: most rows
-- column at DateTime64(3, 'UTC') [UTC]: when
-- column rule String: the rule
-- column subject String: about what
-- column state String: firing or resolved
-- column value Float64: the value of then
-- column threshold Float64: of then
-- column delivered Bool: every receiver of the change has it; false where there was none, or a silence
SELECT
    at,
    rule,
    subject,
    state,
    value,
    threshold,
    delivered
FROM gnomon.alerts
WHERE at >= {from:DateTime64(3)} AND at <= {to:DateTime64(3)}
    AND (at, rule, subject, state)
        < ({to:DateTime64(3)}, {before_rule:String}, {before_subject:String}, {before_state:String})
    AND ({rule:String} = '' OR rule = {rule:String})
    AND ({subject:String} = '' OR subject = {subject:String})
    AND ({state:String} = '' OR state = {state:String})
ORDER BY at DESC, rule DESC, subject DESC, state DESC
LIMIT {limit:UInt32}
