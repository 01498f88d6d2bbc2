import { eventually } from './waiting.ts'
import type { TestWeir } from './weir.ts'

/** The memory that the service counts for requests and answers. */
export async function heldBytes(weir: Pick<TestWeir, 'admin'>): Promise<number> {
  const text = await (await weir.admin('GET', '/metrics')).text()
  return Number(/^weir_held_bytes (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

export async function nothingIsHeld(weir: Pick<TestWeir, 'admin'>): Promise<void> {
  await eventually('nothing is held', async () => (await heldBytes(weir)) === 0)
}
