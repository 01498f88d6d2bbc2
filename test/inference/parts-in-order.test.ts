import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ChatDelta } from '../../src/inference/chat/form.ts'
import { partsInOrder, type PartsInOrder } from '../../src/inference/chat/parts-in-order.ts'

/** The events as a text: `<name id>` opens a part, `</>` closes it, and `</cut>` closes one that is incomplete. */
function parts(): PartsInOrder {
  return partsInOrder(
    {
      open: (part) => (part.kind === 'call' ? `<${part.name} ${part.id}>` : `<${part.kind}>`),
      piece: (text) => text,
      close: (isCut) => (isCut ? '</cut>' : '</>'),
    },
    (index) => `made-${index}`,
  )
}

function call(index: number, text: string, head: { id?: string; name?: string } = {}): ChatDelta {
  const { id, name } = head
  return { tool_calls: [{ index, ...(id ? { id } : {}), function: { ...(name ? { name } : {}), arguments: text } }] }
}

const first = call(0, '', { id: 'a', name: 'f' })
const second = call(1, '', { id: 'b', name: 'g' })

/** What was sent for each delta, and at the end. */
function sent(deltas: readonly ChatDelta[], isCut = false): readonly string[] {
  const order = parts()
  const events = deltas.map((delta) => order.take(delta))
  assert.equal(order.isBroken(), false)
  return [...events, order.end(isCut)]
}

describe('the parts of an answer', () => {
  it('[A10] are sent at once while the engine writes one after the other', () => {
    assert.deepEqual(
      sent([
        { reasoning_content: 'Hm' },
        { content: 'A' },
        { content: 'B' },
        first,
        call(0, '{"x":'),
        call(0, '1}'),
        second,
        call(1, '{}'),
      ]),
      ['<reasoning>Hm', '</><text>A', 'B', '</>', '<f a>{"x":', '1}', '</>', '<g b>{}', '</>'],
    )
  })

  it('[A10] wait while the arguments of a call are incomplete, and lose nothing', () => {
    assert.deepEqual(
      sent([first, second, call(1, '{"y":'), { content: 'A' }, call(0, '{"x":1'), call(1, '2}'), call(0, '}')]),
      ['', '<f a>', '', '', '{"x":1', '', '}</><g b>{"y":2}</><text>A', '</>'],
    )
  })

  it('[A10] wait until the end for a call that never completes', () => {
    assert.deepEqual(sent([first, call(0, '{'), { content: 'A' }, second]), [
      '',
      '<f a>{',
      '',
      '',
      '</><text>A</><g b></>',
    ])
  })

  it('[A10] continue after a bracket in a string, an escaped quote and space before the object', () => {
    const text = String.raw` {"a":"}\"]{","b":["\\"]`
    assert.deepEqual(sent([first, call(0, text), { content: 'A' }, call(0, '}'), call(0, '\n')]), [
      '',
      `<f a>${text}`,
      '',
      '}</><text>A',
      '',
      '</>',
    ])
  })

  it('[A10] have the whole name of a call, even if it arrives in pieces or after the arguments', () => {
    const inPieces = [call(0, '', { id: 'a', name: 'get_' }), call(0, '', { name: 'rain' }), call(0, '{}')]
    assert.deepEqual(sent(inPieces), ['', '', '<get_rain a>{}', '</>'])
    assert.deepEqual(sent([call(0, '{}'), { content: 'A' }, first]), ['', '', '<f a>{}</><text>A', '</>'])
  })

  it('[A10] have a call even if its id and name never arrive', () => {
    assert.deepEqual(sent([call(3, '{}')]), ['', '< made-3>{}</>'])
  })

  it('[A10] are incomplete where the limit cut them: the last part, and every call whose arguments have no end', () => {
    assert.deepEqual(sent([first, call(0, '{'), second, call(1, '{}'), { content: 'A' }], true), [
      '',
      '<f a>{',
      '',
      '',
      '',
      '</cut><g b>{}</><text>A</cut>',
    ])
  })

  it('[A10] are an error if a call continues after its end, when it is closed', () => {
    for (const more of [call(0, '{}'), call(0, '', { name: 'f' })]) {
      const order = parts()
      for (const delta of [first, call(0, '{}'), second, call(0, ' ')]) order.take(delta)
      assert.equal(order.isBroken(), false)
      order.take(more)
      assert.equal(order.isBroken(), true)
    }
  })
})
