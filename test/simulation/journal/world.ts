import { seededRandom } from '../../../src/shared/seeded-random.ts'
import type { openLedger } from '../../../src/ledger/open-ledger.ts'
import type { projectSpans } from '../../../src/ledger/projection.ts'
import { sampleIntent, sampleRow } from '../../support/ledger-samples.ts'
import { simulatedDisk, type DiskImage, type SimulatedDisk } from './disk.ts'
import { CrashedDisk, stored, survivals, type History, type StoreState, type Survival } from './history.ts'
import { simulatedStore, type SimulatedStore } from './store.ts'
import { takeTime, turn, type SimulatedTime } from './time.ts'
import { JournalViolation, JournalWitness } from './witness.ts'

/** The code under test. */
export interface JournalCode {
  readonly openLedger: typeof openLedger
  readonly projectSpans: typeof projectSpans
}

export interface JournalTally {
  schedules: number
  crashes: number
  recoveries: number
}

export interface SimulationOptions {
  readonly seed: number
  readonly schedules: number
  /** Crashes each recovery at each of its steps too, instead of some. */
  readonly isExhaustive: boolean
}

/** What is left of a service that does not run. */
interface Remains {
  readonly disk: DiskImage
  readonly store: StoreState
}

const STEPS = 40
const RUNS = 3
/** Time may pass in one go that makes callers give up, or projections come. */
const PAUSES = [10, 250, 600, 3000, 5000]

/**
 * Runs a ledger on a disk and a store in memory under random schedules, in which both may fail. Then crashes it after
 * each thing that happened, in every way, and checks what the next start makes of what is left.
 */
export async function simulateJournal(code: JournalCode, options: SimulationOptions): Promise<JournalTally> {
  const tally: JournalTally = { schedules: 0, crashes: 0, recoveries: 0 }
  const time = takeTime()
  try {
    for (; tally.schedules < options.schedules; tally.schedules++) {
      const seed = options.seed + tally.schedules
      try {
        await new World(code, time, seededRandom(seed), options.isExhaustive, tally).run()
      } catch (error) {
        if (error instanceof Error) error.message += ` (WEIR_SEED=${seed})`
        throw error
      }
    }
    return tally
  } finally {
    time.giveBack()
  }
}

interface Service {
  readonly disk: SimulatedDisk
  readonly store: SimulatedStore
  readonly ledger: Awaited<ReturnType<typeof openLedger>>
}

class World {
  readonly #code: JournalCode
  readonly #time: SimulatedTime
  readonly #random: () => number
  readonly #isExhaustive: boolean
  readonly #tally: JournalTally
  #witness = new JournalWitness()
  /** Everything that happened before the last crash counts too. */
  readonly #past: History = []
  #requests = 0

  constructor(
    code: JournalCode,
    time: SimulatedTime,
    random: () => number,
    isExhaustive: boolean,
    tally: JournalTally,
  ) {
    this.#code = code
    this.#time = time
    this.#random = random
    this.#isExhaustive = isExhaustive
    this.#tally = tally
  }

  async run(): Promise<void> {
    let remains: Remains = { disk: new Map(), store: { rows: new Map(), aside: new Map(), position: undefined } }
    for (let run = 0; run < RUNS; run++) {
      const history: History = []
      await this.#schedule(remains, history)
      remains = await this.#crashEverywhere(remains, history)
    }
  }

  /** A service under load, on a disk and a store that fail now and then. */
  async #schedule(remains: Remains, history: History): Promise<void> {
    const random = this.#random
    let isDiskFailing = random() < 0.4
    let isStoreFailing = false
    let isStarted = false
    const fate = () => ({
      error: isStarted && isDiskFailing && random() < 0.8 ? new Error('no space left on the device') : undefined,
      part: random() < 0.4 ? 1 : random(),
    })
    const service = await this.#start(remains, history, fate, () => isStarted && isStoreFailing && random() < 0.8)
    isStarted = true
    const open: string[] = []
    for (let step = 0; step < STEPS; step++) {
      const action = Math.floor(random() * 20)
      if (action < 5) this.#note(service, history, open)
      else if (action < 9) this.#settle(service, history, open)
      else if (action < 14) service.disk.step()
      else if (action < 16) this.#time.advance(PAUSES[Math.floor(random() * PAUSES.length)] ?? 0)
      else if (action < 17) this.#time.advance(250)
      else if (action < 18) isDiskFailing = random() < 0.4
      else if (action < 19) isStoreFailing = random() < 0.4
      else void service.ledger.readable().catch(() => {})
      await turn()
    }
    isDiskFailing = isStoreFailing = false
    // Some are left in the middle of something.
    if (random() < 0.5) return
    await this.#finish(service)
    const asked = history.filter(({ kind }) => kind === 'asked').length
    const answered = history.filter(({ kind }) => kind === 'settled' || kind === 'withheld').length
    if (answered < asked) throw new JournalViolation('goes on', `${asked - answered} callers wait for ever`)
  }

  #note({ ledger }: Service, history: History, open: string[]): void {
    const id = `request-${this.#requests++}`
    history.push({ kind: 'noted', id })
    try {
      ledger.note(sampleIntent(id))
      open.push(id)
    } catch {
      // Nothing is sent to an engine.
    }
  }

  #settle({ ledger }: Service, history: History, open: string[]): void {
    const [id] = open.splice(Math.floor(this.#random() * open.length), 1)
    if (id === undefined) return
    history.push({ kind: 'asked', id })
    ledger
      .settle(sampleRow(id), () => sampleRow(id, { outcome: 'withheld', amount: 0n }))
      .then(
        () => history.push({ kind: 'settled', id }),
        () => history.push({ kind: 'withheld', id }),
      )
  }

  /** Everything that is under way ends. */
  async #finish({ disk, ledger }: Service): Promise<void> {
    const closing = { isOver: false }
    void ledger.close().then(() => (closing.isOver = true))
    for (let round = 0; !closing.isOver; round++) {
      if (round > 300) throw new JournalViolation('goes on', 'the ledger cannot be closed')
      disk.step()
      this.#time.advance(50)
      await turn()
    }
  }

  async #start(
    { disk: image, store: state }: Remains,
    history: History,
    fate: Parameters<typeof simulatedDisk>[2],
    isFailing: () => boolean,
    isManual = true,
  ): Promise<Service> {
    const disk = simulatedDisk(image, history, fate, isManual)
    const store = simulatedStore(state, history, isFailing)
    const alarms: (readonly number[])[] = []
    const projection = { files: disk, store, now: this.#time.clock.now, setAside() {} }
    const opening = this.#code
      .openLedger({
        files: disk,
        store,
        clock: this.#time.clock,
        maxJournalBytes: this.#random() < 0.2 ? 500 : Infinity,
        begin: async () => {},
        waitFor: 'journal',
        apply: (spans) => this.#code.projectSpans(projection, spans),
        events: {
          interrupted() {},
          damaged: (segments) => void alarms.push(segments),
          refusedRowsAdded() {},
          stillRefused() {},
          setAside() {},
          storeFailed() {},
          storeRecovered() {},
        },
      })
      .catch((error: unknown) => {
        throw new JournalViolation('goes on', `the service does not start: ${String(error)}`)
      })
    const ledger = await untilOver(opening, disk)
    if (alarms.length > 0) throw new JournalViolation('no false alarm', `segments ${alarms.join()} count as damaged`)
    return { disk, store, ledger }
  }

  /** Crashes after each thing that happened, and returns what one of the crashes left. */
  async #crashEverywhere(before: Remains, history: History): Promise<Remains> {
    const disk = new CrashedDisk(before.disk)
    const end = Math.floor(this.#random() * (history.length + 1))
    let store = before.store
    let left: Remains = before
    for (let index = 0; index <= history.length; index++) {
      if (index > 0) {
        const it = history[index - 1]!
        disk.follow(it)
        this.#witness.follow(it)
        if (it.kind === 'stored') store = stored(store, it)
      }
      const images = survivals.flatMap((survival) =>
        [true, false].map((isUndone) => ({ survival, disk: disk.image(survival, isUndone, this.#random) })),
      )
      for (const image of images) await this.#recover({ disk: image.disk, store }, image.survival)
      if (index === end) {
        left = { disk: images[Math.floor(this.#random() * images.length)]!.disk, store }
      }
    }
    this.#past.push(...history.slice(0, end))
    // What came after the crash never happened.
    this.#witness = new JournalWitness()
    for (const it of this.#past) this.#witness.follow(it)
    this.#witness.follow({ kind: 'failed' })
    return left
  }

  /** Starts on what is left, crashes at each step of that, and goes on in the end. */
  async #recover(remains: Remains, survival: Survival): Promise<void> {
    this.#tally.crashes++
    const history: History = []
    const isWhole = survival === 'everything'
    const service = await this.#startAgain(remains, history)
    this.#witness.check(service.store.state(), isWhole)
    const steps = history.length
    await this.#goOn(service)
    const chosen = Math.floor(this.#random() * (steps + 1))
    const disk = new CrashedDisk(remains.disk)
    let { store } = remains
    for (let index = 0; index < steps; index++) {
      const it = history[index]!
      disk.follow(it)
      if (it.kind === 'stored') store = stored(store, it)
      if (!this.#isExhaustive && index !== chosen) continue
      const image = disk.image('everything', this.#random() < 0.5, this.#random)
      const again = await this.#startAgain({ disk: image, store }, [])
      this.#witness.check(again.store.state(), isWhole)
      if (this.#isExhaustive) await this.#goOn(again)
    }
  }

  async #startAgain(remains: Remains, history: History): Promise<Service> {
    this.#tally.recoveries++
    const fate = { error: undefined, part: 1 }
    const service = await this.#start(
      remains,
      history,
      () => fate,
      () => false,
      false,
    )
    for (const [segment, reads] of service.disk.reads) {
      if (reads > 2) throw new JournalViolation('bounded', `segment ${segment} was read ${reads} times`)
    }
    // The last one is the new one.
    const left = (await service.disk.list()).slice(0, -1)
    if (left.length > 0) throw new JournalViolation('bounded', `segments ${left.join()} are left after a start`)
    return service
  }

  async #goOn(service: Service): Promise<void> {
    const id = 'a new request'
    const { ledger, store } = service
    let isSettled = false
    try {
      ledger.note(sampleIntent(id))
    } catch (error) {
      throw new JournalViolation('goes on', String(error))
    }
    void ledger.settle(sampleRow(id)).then(() => (isSettled = true))
    await this.#finish(service)
    if (!isSettled || !store.state().rows.has(id)) throw new JournalViolation('goes on', 'nothing can be settled')
    // The last one is the new one.
    const left = (await service.disk.list()).slice(0, -1)
    if (left.length > 0) throw new JournalViolation('goes on', `segments ${left.join()} are left after a clean stop`)
  }
}

/** A start makes its first segment, so the disk has to go on meanwhile. */
async function untilOver<Result>(opening: Promise<Result>, disk: SimulatedDisk): Promise<Result> {
  const state = { isOver: false }
  const over = opening.finally(() => (state.isOver = true))
  // The awaiting caller gets a failure.
  over.catch(() => {})
  while (!state.isOver) {
    disk.step()
    await turn()
  }
  return over
}
