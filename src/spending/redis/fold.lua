-- The database's sum of a month, read after `reserve` said which counts it has for certain. The replica says: epoch, generation
-- and month as it was answered, echo (for each replica the S and P of that answer), base.
-- Changes nothing if the sums had to be read again since, or were.
local it = account.months[said.month]
if account.generation ~= said.generation or not it then return 0 end
it.base = said.base
it.read_at = now
local is_exact = true
for name, count in pairs(it.counts) do
  local echo = said.echo[name]
  if echo then count[2] = echo[2] end
  if not echo or echo[1] ~= echo[2] or count[1] ~= echo[1] then is_exact = false end
end
-- A sum that was read while requests were settled may count some of them twice, until it is read in a quiet moment.
it.again_at = now + (is_exact and 10000 or 1000)
account.generation = account.generation + 1
save()
return 1
