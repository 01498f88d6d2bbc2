import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { chatLine } from '../support/batch-lines.ts'
import { chatStage } from '../support/chat-stage.ts'

const run = promisify(execFile)

const program = `
import sys, time
from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2])
soon = {"anchor": "created_at", "seconds": 3600}
file = client.files.create(file=open(sys.argv[3], "rb"), purpose="batch", expires_after=soon)
assert file.expires_at - file.created_at == 3600, file
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
while batch.status not in ("completed", "failed", "expired", "cancelled"):
    time.sleep(0.2)
    batch = client.batches.retrieve(batch.id)
assert batch.status == "completed", batch.errors
assert batch.request_counts.completed == 3, batch.request_counts
assert batch.id in [it.id for it in client.batches.list(limit=1)]
sys.stdout.write(client.files.content(batch.output_file_id).text)
client.files.delete(file.id)
`

it('the openai SDK of Python submits a batch, waits and reads the results', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-python-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  await run('python3', ['-m', 'venv', folder])
  await run(join(folder, 'bin', 'pip'), ['install', '--quiet', 'openai==2.8.0'])
  const { weir } = await chatStage(t, { config: {} })
  const [script, input] = [join(folder, 'batch.py'), join(folder, 'in.jsonl')]
  writeFileSync(script, program)
  writeFileSync(input, ['a', 'b', 'c'].map((id) => JSON.stringify(chatLine(id))).join('\n'))
  const { stdout } = await run(join(folder, 'bin', 'python'), [script, weir.base, weir.key, input])
  const lines = stdout.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { custom_id: string }).custom_id),
    ['a', 'b', 'c'],
  )
})
