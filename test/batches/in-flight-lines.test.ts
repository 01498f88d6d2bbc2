import assert from 'node:assert/strict'
import { it } from 'node:test'
import { inFlightLines } from '../../src/batches/in-flight-lines.ts'

it('lines in flight are counted for each workspace, and what waits goes on when one ends', async () => {
  const lines = inFlightLines()
  for (const workspaceId of ['a', 'a', 'b']) lines.begin(workspaceId)
  assert.deepEqual(['a', 'b', 'c'].map(lines.of), [2, 1, 0])
  let woken = 0
  const waiting = [lines.changed(), lines.changed()].map((it) => it.then(() => woken++))
  lines.begin('c')
  assert.equal(woken, 0)
  lines.end('a')
  await Promise.all(waiting)
  assert.deepEqual(['a', 'b', 'c'].map(lines.of), [1, 1, 1])
  const later = lines.changed()
  lines.wake()
  await later
  for (const workspaceId of ['a', 'b', 'c']) lines.end(workspaceId)
  assert.deepEqual(['a', 'b', 'c'].map(lines.of), [0, 0, 0])
})
