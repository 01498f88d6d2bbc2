/** In milliseconds. */
export interface ProcessorTime {
  readonly at: number
  /** Processor time this process has used so far, over all its threads. */
  readonly used: number
}

export interface ThreadPace {
  /** An answer begins. */
  begin(): void
  /** Something was computed: a token, or a piece of a prompt. */
  step(): void
  /** An answer has ended, whatever its outcome. */
  end(): void
}

/** Long enough for the scheduler's turns to even out. */
const WINDOW_MS = 500
/**
 * Shares of the processor time the threads could use. Below the first, fewer threads are faster: measured with two
 * threads beside other programs.
 */
const SLOWED_SHARE = 0.65
const UNDISTURBED_SHARE = 0.9
const FIRST_PATIENCE_MS = 1000
const MAX_PATIENCE_MS = 30_000

/**
 * Adapts the number of threads to the processor time the machine gives this process. The threads of llama.cpp wait for
 * each other by spinning, hundreds of times a token, so one thread that shares its core slows all of them: beside one
 * busy program, two threads on two cores are several times slower than one. After a while, more threads are tried again.
 */
export function threadPace(options: {
  readonly threads: number
  set(threads: number): void
  read(): ProcessorTime
}): ThreadPace {
  const { threads: maxThreads, set, read } = options
  let threads = maxThreads
  let answers = 0
  let since: ProcessorTime = { at: 0, used: 0 }
  let patienceMs = FIRST_PATIENCE_MS
  let moreAt = 0

  function change(count: number): void {
    threads = count
    set(count)
  }

  return {
    begin() {
      // Idle time says nothing about the machine.
      if (answers++ === 0) since = read()
    },
    step() {
      const now = read()
      const passedMs = now.at - since.at
      if (passedMs < WINDOW_MS) return
      const used = (now.used - since.used) / passedMs
      since = now
      if (threads > 1 && used < SLOWED_SHARE * threads) {
        change(Math.max(1, Math.min(threads - 1, Math.round(used))))
        moreAt = now.at + patienceMs
        patienceMs = Math.min(MAX_PATIENCE_MS, 2 * patienceMs)
      } else if (threads < maxThreads && now.at >= moreAt && used >= UNDISTURBED_SHARE * threads) {
        change(Math.min(maxThreads, 2 * threads))
      } else if (threads === maxThreads) patienceMs = FIRST_PATIENCE_MS
    },
    end() {
      answers--
    },
  }
}

export function processorTime(): ProcessorTime {
  const { user, system } = process.cpuUsage()
  return { at: performance.now(), used: (user + system) / 1000 }
}
