-- A batch place arrives. ARGV: 3 its id, 4 its cost, 5 how long it may wait: negative if as long as it takes.
-- Returns the decision, or 'queued' and the place's number. Entering again changes nothing and returns the same answer.
if not is_member then return { 'unknown' } end
settle()
batch = batch or open_batch_places()
local decision = batch.arrive(ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]))
save()
return decision
