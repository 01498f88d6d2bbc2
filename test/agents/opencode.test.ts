import { join } from 'node:path'
import { describe, it } from 'node:test'
import { missing } from './agent-process.ts'
import { editsFile, isInterrupted, type Agent } from './agent-session.ts'

const opencode: Agent = {
  name: 'opencode',
  configure: (home, origin) =>
    home.write(
      'work/opencode.json',
      JSON.stringify({
        autoupdate: false,
        share: 'disabled',
        model: 'weir/meta/test-8b',
        provider: {
          weir: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Weir',
            options: { baseURL: `${origin}/api/v1`, apiKey: '{env:WEIR_API_KEY}' },
            models: { 'meta/test-8b': { name: 'Test', limit: { context: 200_000, output: 32_000 } } },
          },
        },
      }),
    ),
  args: (prompt) => ['run', prompt],
  variables: (_, key) => ({
    WEIR_API_KEY: key,
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  }),
  calls: ({ work }) => {
    const path = join(work, 'greeting.txt')
    const change = { filePath: path, oldString: 'hello', newString: 'goodbye' }
    return [
      { id: 'call_1', name: 'read', arguments: ['{"file', `Path":${JSON.stringify(path)}}`] },
      { id: 'call_2', name: 'edit', arguments: [JSON.stringify(change)] },
    ]
  },
}

describe('opencode', { skip: missing('opencode') }, () => {
  it('edits a file in a session of several turns', { timeout: 200_000 }, (t) => editsFile(t, opencode))
  it('stops the engine when it is interrupted, and pays for what was streamed', { timeout: 200_000 }, (t) =>
    isInterrupted(t, opencode),
  )
})
