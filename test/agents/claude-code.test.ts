import { join } from 'node:path'
import { describe, it } from 'node:test'
import { missing } from './agent-process.ts'
import { editsFile, isInterrupted, learnsOfFullContext, type Agent } from './agent-session.ts'

const claude: Agent = {
  name: 'claude',
  configure() {},
  args: (prompt) => ['-p', '--dangerously-skip-permissions', prompt],
  variables: (origin, key) => ({
    ANTHROPIC_BASE_URL: `${origin}/api`,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_MODEL: 'meta/test-8b',
    ANTHROPIC_DEFAULT_HAIKU_MODEL: 'meta/test-8b',
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: '1000',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    // It refuses to work without questions for root, except in a sandbox.
    IS_SANDBOX: '1',
  }),
  calls: ({ work }) => {
    const path = join(work, 'greeting.txt')
    const change = { file_path: path, old_string: 'hello', new_string: 'goodbye' }
    return [
      { id: 'call_1', name: 'Read', arguments: ['{"file_', `path":${JSON.stringify(path)}}`] },
      { id: 'call_2', name: 'Edit', arguments: [JSON.stringify(change)] },
    ]
  },
  tooLong: /prompt is too long|context limit|maximum context/i,
}

describe('Claude Code', { skip: missing('claude') }, () => {
  it('edits a file in a session of several turns', { timeout: 200_000 }, (t) => editsFile(t, claude))
  it('stops the engine when it is interrupted, and pays for what was streamed', { timeout: 200_000 }, (t) =>
    isInterrupted(t, claude),
  )
  it('learns that its context is full', { timeout: 200_000 }, (t) => learnsOfFullContext(t, claude))
})
