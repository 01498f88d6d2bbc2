/** The coding agents that test/agents runs. docs/clients.md lists them. */
export const agents = {
  Codex: { name: '@openai/codex', version: '0.166.0', api: '`/responses`' },
  'Claude Code': { name: '@anthropic-ai/claude-code', version: '2.1.325', api: '`/messages`' },
  opencode: { name: 'opencode-ai', version: '1.18.33', api: '`/chat/completions`' },
}

/** What each of them did in test/agents. */
export const deeds = {
  Codex: [
    'edited a file in a session of several turns: it looked at the file, patched it and reported, with reasoning sent back',
    'was interrupted in the middle of an answer: the engine stopped 29 ms after it had left, and the three tokens that it had got were billed',
    'said that its context was full, from `response.failed`',
  ],
  'Claude Code': [
    'edited a file with its own tools Read and Edit, with mid-conversation system messages and sealed thinking',
    'was interrupted in the middle of an answer: the engine stopped 20 ms after it had left, and the three tokens that it had got were billed',
    'said that the prompt was too long',
  ],
  opencode: [
    'edited a file with its own tools read and edit',
    'was interrupted in the middle of an answer: the engine stopped 70 ms after it had left, and the three tokens that it had got were billed',
  ],
}

/** The part of docs/clients.md about agents. */
export function agentsSection() {
  const rows = Object.entries(agents).flatMap(([agent, { name, version, api }]) =>
    deeds[agent].map((deed, index) => (index === 0 ? [`${agent} (${name})`, version, api, deed] : ['', '', '', deed])),
  )
  const table = [['Agent', 'Version', 'API', 'What it did'], ['---', '---', '---', '---'], ...rows]
  return `## Coding agents

These are the programs themselves, from the npm registry, each with an empty environment and a home of its own, against the
real service in front of a scripted engine. \`npm run test:agents\` runs them (after \`npm run install:agents\`). What they
sent is kept in \`test/fixtures/agents\` and sent again by \`npm test\`. Their configuration is in
[the guide](guides/coding-agents.md).

${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}
`
}
