import { describe, it } from 'node:test'
import { missing } from './agent-process.ts'
import { editsFile, isInterrupted, learnsOfFullContext, type Agent } from './agent-session.ts'

const codex: Agent = {
  name: 'codex',
  configure: (home, origin) =>
    home.write(
      'home/.codex/config.toml',
      `model = "meta/test-8b"
model_provider = "weir"
model_context_window = 200000

[model_providers.weir]
name = "Weir"
base_url = "${origin}/api/v1"
env_key = "WEIR_API_KEY"
wire_api = "responses"
`,
    ),
  args: (prompt) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
  variables: (_, key) => ({ WEIR_API_KEY: key }),
  calls: () => {
    const patch = '*** Begin Patch\n*** Update File: greeting.txt\n@@\n-hello\n+goodbye\n*** End Patch'
    const command = (id: string, cmd: string) => {
      const text = JSON.stringify({ cmd })
      return { id, name: 'exec_command', arguments: [text.slice(0, 9), text.slice(9)] }
    }
    return [command('call_1', 'cat greeting.txt'), command('call_2', `apply_patch <<'EOF'\n${patch}\nEOF`)]
  },
  tooLong: /context window/i,
}

describe('Codex', { skip: missing('codex') }, () => {
  it('edits a file in a session of several turns', { timeout: 200_000 }, (t) => editsFile(t, codex))
  it('stops the engine when it is interrupted, and pays for what was streamed', { timeout: 200_000 }, (t) =>
    isInterrupted(t, codex),
  )
  it('learns that its context is full', { timeout: 200_000 }, (t) => learnsOfFullContext(t, codex))
})
