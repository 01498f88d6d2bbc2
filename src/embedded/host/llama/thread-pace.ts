/** What a process has had so far, in milliseconds. */
export interface ProcessorTime {
  at: number
  used: number
}

export interface ThreadPace {
  /** An answer is begun. */
  begin(): void
  /** Something was computed: a token, or a piece of a prompt. */
  step(): void
  /** The answer is over, however it went. */
  end(): void
}

/** Long enough for the scheduler's turns to even out. */
const windowMs = 500
/** Of what the threads could use. Below it fewer of them are faster: measured with two threads and other programs. */
const heldUpShare = 0.65
const unhinderedShare = 0.9
const patienceMs = { first: 1000, longest: 30_000 }

/**
 * How many threads compute: no more than the machine has room for. The threads of llama.cpp wait for each other by
 * spinning, hundreds of times a token, so that one which has to share its core holds up all: beside one busy program two
 * threads on two cores are several times slower than one. Whether they are kept from running is seen by the processor
 * time the process gets; after a while more are tried again.
 */
export function threadPace(options: {
  threads: number
  set: (threads: number) => void
  read: () => ProcessorTime
}): ThreadPace {
  const { threads: most, set, read } = options
  let threads = most
  let answers = 0
  let since: ProcessorTime = { at: 0, used: 0 }
  let patience = patienceMs.first
  let moreAt = 0

  function change(count: number): void {
    threads = count
    set(count)
  }

  return {
    begin() {
      // While nothing is computed nothing is used, which says nothing about the machine.
      if (answers++ === 0) since = read()
    },
    step() {
      const now = read()
      const passed = now.at - since.at
      if (passed < windowMs) return
      const used = (now.used - since.used) / passed
      since = now
      if (threads > 1 && used < heldUpShare * threads) {
        change(Math.max(1, Math.min(threads - 1, Math.round(used))))
        moreAt = now.at + patience
        patience = Math.min(patienceMs.longest, 2 * patience)
      } else if (threads < most && now.at >= moreAt && used >= unhinderedShare * threads) {
        change(Math.min(most, 2 * threads))
      } else if (threads === most) patience = patienceMs.first
    },
    end() {
      answers--
    },
  }
}

/** Of this process, all its threads together. */
export function processorTime(): ProcessorTime {
  const { user, system } = process.cpuUsage()
  return { at: performance.now(), used: (user + system) / 1000 }
}
