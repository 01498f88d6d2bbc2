import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { diskRoom, type DiskRoom } from '../../src/shared/disk-room.ts'
import { gate } from '../support/waiting.ts'

fc.configureGlobal({ seed: 1 })

const GIB = 2 ** 30

/** A disk that is only two numbers, and processes that write to it. */
function stage({ size = 1000, free = size, processes = 1 }: { size?: number; free?: number; processes?: number } = {}) {
  const disk = { size, free, measurements: 0, hold: undefined as Promise<void> | undefined }
  const time = { ms: 0 }
  const space = async () => {
    disk.measurements++
    const seen = { size: disk.size, free: disk.free }
    await disk.hold
    return seen
  }
  const rooms = Array.from({ length: processes }, () => diskRoom({ space, now: () => time.ms, processes }))
  return { disk, time, rooms, room: rooms[0] ?? assert.fail() }
}

async function write(room: DiskRoom, disk: { free: number }, bytes: number): Promise<void> {
  await room.write(bytes, async () => void (disk.free -= bytes))
}

describe('the room on a disk', () => {
  it('is what is free, minus a quarter of the disk', async () => {
    const { room, disk } = stage({ size: 1000, free: 700 })
    await room.measure(1)
    assert.equal(room.left(), 450)
    await write(room, disk, 450)
    assert.equal(room.left(), 0)
  })

  it('is what is free minus 1 GiB on a large disk, and negative when the reserve is in use', async () => {
    for (const [size, free, left] of [
      [4 * GIB, 2 * GIB, GIB],
      [4 * GIB - 4, 2 * GIB, GIB + 1],
      [400 * GIB, 3 * GIB, 2 * GIB],
      [400 * GIB, GIB - 1, -1],
    ] as const) {
      const { room } = stage({ size, free })
      await room.measure(1)
      assert.equal(room.left(), left)
    }
  })

  it('is measured again after a second, after many bytes, and before anything is refused', async () => {
    const { room, disk, time } = stage({ size: 1600, free: 1000 })
    await room.measure(10)
    time.ms = 999
    await room.measure(10)
    assert.equal(disk.measurements, 1)
    time.ms = 1000
    await room.measure(10)
    assert.equal(disk.measurements, 2)
    // A quarter of the reserve, which is 400.
    await write(room, disk, 90)
    await room.measure(10)
    assert.equal(disk.measurements, 2)
    await room.measure(11)
    assert.equal(disk.measurements, 3)
    disk.free = 450
    time.ms = 2000
    await room.measure(1)
    assert.equal(room.left(), 50)
    disk.free = 1000
    await room.measure(51)
    assert.deepEqual([disk.measurements, room.left()], [5, 600])
  })

  it('is measured once for all concurrent callers', async () => {
    const { room, disk } = stage()
    await Promise.all(Array.from({ length: 100 }, () => room.measure(1)))
    assert.equal(disk.measurements, 1)
  })

  it('counts a write that the measurement may have missed', async () => {
    const { room, disk } = stage({ size: 1000, free: 1000 })
    const held = gate()
    const before = room.write(100, () => held.opened)
    disk.hold = held.opened
    const measured = room.measure(1)
    const during = room.write(30, async () => {})
    held.open()
    await Promise.all([before, measured, during])
    assert.equal(room.left(), 750 - 130)
  })

  it('counts a write that failed until the next measurement', async () => {
    const { room, time } = stage({ size: 1000, free: 1000 })
    await room.measure(1)
    await assert.rejects(
      room.write(20, () => Promise.reject(new Error('no'))),
      /no/,
    )
    assert.equal(room.left(), 730)
    time.ms = 1000
    await room.measure(1)
    assert.equal(room.left(), 750)
  })

  it('can be measured again after a measurement failed', async () => {
    let isAway = true
    const space = async () => (isAway ? Promise.reject(new Error('no disk')) : { size: 1000, free: 1000 })
    const room = diskRoom({ space, now: () => 0, processes: 1 })
    await assert.rejects(room.measure(1), /no disk/)
    assert.equal(room.left(), 0)
    isAway = false
    await room.measure(1)
    assert.equal(room.left(), 750)
  })

  for (const processes of [1, 2, 4, 16]) {
    it(`is never overdrawn by more than a quarter of the reserve, and one owner has half, with processes: ${processes}`, async () => {
      const size = 100_000
      const reserve = size / 4
      const inHalf: number[] = []
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.nat(processes - 1), fc.integer({ min: 1, max: 200 }), fc.nat(400)), {
            minLength: 2000,
            maxLength: 2000,
          }),
          async (writes) => {
            const { disk, time, rooms } = stage({ size, processes })
            const held = rooms.map(() => 0)
            for (const [process, bytes, ms] of writes) {
              const room = rooms[process] ?? assert.fail()
              time.ms += ms
              await room.measure(bytes)
              const limit = ((held[process] ?? 0) + room.left()) * room.ownerShare
              if (bytes > room.left() || (held[process] ?? 0) + bytes > limit) continue
              held[process] = (held[process] ?? 0) + bytes
              await write(room, disk, bytes)
            }
            const all = held.reduce((sum, it) => sum + it, 0)
            // What is not measured yet adds at most a quarter of the reserve.
            assert.ok(all <= (size - reserve) / 2 + reserve / 4, `${all}`)
            assert.ok(disk.free >= reserve - reserve / 4)
            inHalf.push(all)
          },
        ),
        // Smaller examples would tell nothing, and take minutes to find.
        { numRuns: 20, endOnFailure: true },
      )
      assert.ok(Math.min(...inHalf) > (size - reserve) * 0.4, 'one owner can use most of its half')
      const left = (1 - stage({ processes }).room.ownerShare) ** processes
      assert.ok(Math.abs(left - 0.5) < 1e-9, 'half is left when one owner has its share in each process')
    })
  }
})
