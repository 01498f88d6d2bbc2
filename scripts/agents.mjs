import { readFileSync } from 'node:fs'

/** The coding agents that test/agents runs. docs/clients.md lists them. */
export const agents = {
  Codex: { name: '@openai/codex', version: '0.166.0', api: '`/responses`', file: 'codex' },
  'Claude Code': { name: '@anthropic-ai/claude-code', version: '2.1.325', api: '`/messages`', file: 'claude' },
  opencode: { name: 'opencode-ai', version: '1.18.33', api: '`/chat/completions`', file: 'opencode' },
}

/** What `WEIR_KEEP_REQUESTS=1 npm run test:agents` saw each of them do. */
function deedsOf(file) {
  return JSON.parse(readFileSync(new URL(`../test/fixtures/agents/deeds/${file}.json`, import.meta.url), 'utf8'))
}

function worded({ edited, interrupted, fullContext }) {
  return [
    `edited a file in a session of ${edited.calls} calls, with its own ${edited.tools.length === 1 ? 'tool' : 'tools'} ${edited.tools.join(' and ')}`,
    `was interrupted in the middle of an answer: the engine stopped ${interrupted.engineStoppedMs} ms after it had left, and the ${interrupted.billedTokens} tokens that it had got were billed`,
    ...(fullContext ? [`said that its context was full ("${fullContext.said}")`] : []),
  ]
}

/** The part of docs/clients.md about agents. */
export function agentsSection() {
  const rows = Object.entries(agents).flatMap(([agent, { name, api, file }]) => {
    const deeds = deedsOf(file)
    return worded(deeds).map((deed, index) =>
      index === 0 ? [`${agent} (${name})`, deeds.version, api, deed] : ['', '', '', deed],
    )
  })
  const table = [['Agent', 'Version', 'API', 'What it did'], ['---', '---', '---', '---'], ...rows]
  return `## Coding agents

These are the programs themselves, from the npm registry, each with an empty environment and a home of its own, against the
real service in front of a scripted engine. \`npm run test:agents\` runs them (after \`npm run install:agents\`). What they
sent is kept in \`test/fixtures/agents\` and sent again by \`npm test\`; what they did, with its figures, is what the last kept
run saw. Their configuration is in [the guide](guides/coding-agents.md).

${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}
`
}
