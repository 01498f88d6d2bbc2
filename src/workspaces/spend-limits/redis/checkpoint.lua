-- Stores the database's sum of a month, which was read after `reserve` returned the totals that it certainly includes.
-- Sent: epoch, generation and month from that answer, echo (S and P of each replica in that answer), base.
-- Changes nothing if the generation has changed since.
local account = opened(KEYS[2])
local it = account.months[sent.month]
if account.generation ~= sent.generation or not it then return 0 end
it.base = sent.base
it.read_at = now
local is_exact = true
for name, count in pairs(it.counts) do
  local echo = sent.echo[name]
  if echo then count[2] = echo[2] end
  if not echo or echo[1] ~= echo[2] or count[1] ~= echo[1] then is_exact = false end
end
-- A sum read while requests were being settled may count some of them twice, so it is soon read again.
it.again_at = now + (is_exact and 10000 or 1000)
account.generation = account.generation + 1
save(KEYS[2], account)
return 1
