import assert from 'node:assert/strict'
import { it } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { processesNaming } from '../support/processes.ts'
import { modelEntry, startWeir } from '../support/weir.ts'
import { engineFile, missing } from './engine-process.ts'
import { llamaScript, llamaWeights } from './llamacpp-process.ts'

const PYTHON = 'llamacpp/bin/python'

/** Two servers of llama.cpp that do not fit on the device together. */
function modelOnDemand(id: string, port: number): object {
  const command = [engineFile(PYTHON), llamaScript, '${PORT}', 'chat', engineFile(llamaWeights)]
  const run = { command, port, device: 'cpu', memory: '600MiB', start_timeout_ms: 180_000 }
  const limits = { max_wait_ms: 300_000, max_concurrent_requests: 2 }
  return modelEntry([], { id, aliases: [], serverless: { engine: { kind: 'llamacpp', model: 'm', run }, limits } })
}

it('servers of llama.cpp start, swap and end with the service', { skip: missing(PYTHON, llamaWeights) }, async () => {
  const ids = ['llama/one', 'llama/two']
  const ports = [await freePort(), await freePort()] as const
  const models = [modelOnDemand('llama/one', ports[0]), modelOnDemand('llama/two', ports[1])]
  const weir = await startWeir({ devices: { cpu: '1GiB' }, models })
  const running = async (): Promise<readonly string[]> => {
    const answer = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
      data: { lane: string; on_demand: { state: string } }[]
    }
    return answer.data.filter((it) => it.on_demand.state === 'ready').map(({ lane }) => lane)
  }
  try {
    // The second request of each waits behind the first, and the models take turns on the device.
    for (const id of [...ids, ...ids]) {
      const message = { role: 'user', content: 'Tell me about rivers.' }
      const answers = await Promise.all(
        [1, 2].map(() => weir.chat({ model: id, messages: [message], max_tokens: 20, temperature: 0 })),
      )
      for (const answer of answers) {
        assert.equal(answer.status, 200, await answer.clone().text())
        const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
        assert.notEqual(choices[0]?.message.content, '')
      }
      assert.deepEqual(await running(), [id])
    }
    assert.equal((await weir.ledger()).length, 8)
  } finally {
    await weir.stop()
  }
  for (const port of ports) assert.deepEqual(processesNaming(`${llamaScript}\0${port}`), [])
})
