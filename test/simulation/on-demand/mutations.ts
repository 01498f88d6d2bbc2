import type { Mutation } from '../../mutants.ts'
import type { Invariant } from './witness.ts'

/** Mutations of src/engines/on-demand, each with the invariant that it breaks. */
export const mutations: readonly (Mutation & { readonly breaks: Invariant })[] = [
  {
    name: 'a budget may be exceeded by one',
    file: 'room.ts',
    find: 'used + need <= (budgets.get(resource) ?? 1)',
    replace: 'used + need <= (budgets.get(resource) ?? 1) + 1',
    breaks: 'E1',
  },
  {
    name: 'a process that ends no longer counts',
    find: '    enter(entry, next[kind], nowMs)\n',
    replace: "    enter(entry, next[kind], nowMs)\n    if (kind === 'stop') entry.held = nothing\n",
    breaks: 'E1',
  },
  {
    name: 'an engine that wakes up takes no more than it took asleep',
    find: "if (kind === 'start' || kind === 'wake') entry.held",
    replace: "if (kind === 'start') entry.held",
    breaks: 'E1',
  },
  {
    name: 'room is counted as soon as an engine begins to fall asleep',
    file: 'room.ts',
    find: 'if (fitsBeside(({ held }) => held))',
    replace: 'if (fitsBeside(({ held, leaves }) => leaves ?? held))',
    breaks: 'E1',
  },
  {
    name: 'an engine with calls is swapped',
    find: 'if (isIdle(entry)) act(kind, name, entry, nowMs)\n      else entry.isClosing = true',
    replace: 'act(kind, name, entry, nowMs)',
    breaks: 'E2',
  },
  {
    name: 'an operator ends an engine with calls',
    find: "else if (hasProcess(entry) && entry.state !== 'stopping') entry.ending = 'stop'",
    replace: "else if (entry.state === 'ready') act('stop', name, entry, nowMs)",
    breaks: 'E2',
  },
  {
    name: 'a pinned engine is swapped',
    find: 'isEvictable: isPresent && !isPinned',
    replace: 'isEvictable: isPresent',
    breaks: 'E3',
  },
  {
    name: 'a pinned engine ends when it is idle',
    find: 'wantedSince(entry) === undefined && !entry.isPinned',
    replace: 'wantedSince(entry) === undefined',
    breaks: 'E3',
  },
  {
    name: 'no minimum service',
    find: 'entry.sinceMs + (isIdle(entry) ? rules.minServiceMs :',
    replace: 'entry.sinceMs + (isIdle(entry) ? 0 :',
    breaks: 'E4',
  },
  {
    name: 'last in, first out',
    find: "      const calls = [...entry.waiting]\n      entry.waiting.clear()\n      for (const call of calls) call.state = 'running'",
    replace:
      "      const calls = [...entry.waiting].reverse()\n      entry.waiting.clear()\n      for (const call of calls) call.state = 'running'",
    breaks: 'E5',
  },
  {
    name: 'a busy engine keeps its place for ever',
    find: 'Math.max(rules.minServiceMs, rules.maxTurnMs))',
    replace: 'Infinity)',
    breaks: 'E6',
  },
  {
    name: 'a closing engine still takes calls',
    find: "return state === 'ready' && !isClosing && ending === undefined",
    replace: "return state === 'ready' && ending === undefined",
    breaks: 'E6',
  },
  {
    name: 'an engine behind another takes its room',
    find: '      for (const resource of needs.keys()) reserved.add(resource)\n',
    replace: '',
    breaks: 'E10',
  },
  {
    name: 'the youngest demand first',
    find: 'wantedSince(one)! - wantedSince(other)!',
    replace: 'wantedSince(other)! - wantedSince(one)!',
    breaks: 'E10',
  },
  {
    name: 'a timer is missing for what is protected',
    find: 'if (!victims.map(([, entry]) => due(protectedUntilMs(entry), nowMs)).every(Boolean)) return',
    replace: 'if (!victims.every(([, entry]) => protectedUntilMs(entry) <= nowMs)) return',
    breaks: 'E6',
  },
  {
    name: 'calls of a failed start wait on',
    find: 'if (entry.hasFailedToStart) refuseWaiting(name, entry, reason)\n  }',
    replace: 'entry.retryAtMs = Infinity\n  }',
    breaks: 'E8',
  },
  {
    name: 'a process that is still ending is started again',
    find: '!isBehind && !hasTransition(entry) && tryStart',
    replace: '!isBehind && tryStart',
    breaks: 'E7',
  },
  {
    name: 'a sleeping engine is started, not woken',
    find: "act(entry.state === 'asleep' ? 'wake' : 'start', name",
    replace: "act('start', name",
    breaks: 'E7',
  },
  {
    name: 'no restart after a crash',
    find: 'if (hasProcess(entry)) processEnded(name, entry, reason, nowMs)\n',
    replace: "if (entry.state === 'stopping') processEnded(name, entry, reason, nowMs)\n",
    breaks: 'E8',
  },
  {
    name: 'calls are refused after a crash as after a failed start',
    find: "entry.hasFailedToStart = state === 'starting' || state === 'waking'",
    replace: 'entry.hasFailedToStart = true',
    breaks: 'E9',
  },
]
