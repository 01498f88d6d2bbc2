/** Breaks of the scripts in src/workspaces/spend-limits/redis. Each lets a limit be overdrawn, or leaves less room than there is. */
export const mutations: readonly {
  readonly name: string
  readonly script: string
  readonly find: string
  readonly replace: string
}[] = [
  {
    name: 'what others hold does not count',
    script: 'reserve',
    find: 'for _, member in pairs(account.members) do add(sum, member.held, 1) end\n    add(sum, amount, 1)',
    replace: 'add(sum, it.report.held, 1)\n    add(sum, amount, 1)',
  },
  {
    name: 'two reservations in one call do not see each other',
    script: 'reserve',
    find: 'account.members[sent.replica].held = text_of(held)',
    replace: '',
  },
  {
    name: 'a silent replica is forgotten at once',
    script: 'account',
    find: 'local KEPT = 3600000',
    replace: 'local KEPT = 1000',
  },
  {
    name: 'what was known of others is not passed on to a new epoch',
    script: 'reserve',
    find: 'elseif not accounted[it[1]] then',
    replace: 'elseif false then',
  },
  {
    name: 'old data is believed rather than what was learnt since',
    script: 'reserve',
    find: 'if is_at_most(sum, it[3]) then member.held = it[3] end',
    replace: '',
  },
  {
    name: 'a sum never replaces what is counted',
    script: 'checkpoint',
    find: 'if echo then count[2] = echo[2] end',
    replace: '',
  },
  {
    name: 'a request may cost more than is left by less than a billionth of a dollar',
    script: 'account',
    find: 'return settled_halves(rest) >= 0',
    replace: 'return settled_halves(rest) >= -1',
  },
]
