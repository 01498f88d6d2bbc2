/** Watches a stream of text for stop strings. */
export interface StopText {
  /** Returns the part of the text so far that may be shown: never a stop string, nor anything after it. */
  push(text: string): string
  /** At the end of the text: returns what was kept back because it might have become a stop string. */
  flush(): string
  /** The stop string that was found, if any. */
  found(): string | undefined
  /** The text after the stop string. */
  remainder(): string
}

export function stopText(stops: readonly string[]): StopText {
  const longest = Math.max(0, ...stops.map((stop) => stop.length))
  let pending = ''
  let found: string | undefined

  function take(length: number): string {
    const text = pending.slice(0, length)
    pending = pending.slice(length)
    return text
  }

  /** The length of the longest ending of the pending text that could be the beginning of a stop string. */
  function suspectLength(): number {
    for (let length = Math.min(longest - 1, pending.length); length > 0; length--) {
      const ending = pending.slice(-length)
      if (stops.some((stop) => stop.startsWith(ending))) return length
    }
    return 0
  }

  return {
    push(text) {
      pending += text
      let end = Infinity
      for (const stop of stops) {
        const index = pending.indexOf(stop)
        if (index >= 0 && index < end) [end, found] = [index, stop]
      }
      return take(found === undefined ? pending.length - suspectLength() : end)
    },
    flush: () => (found === undefined ? take(pending.length) : ''),
    found: () => found,
    remainder: () => pending.slice(found?.length ?? 0),
  }
}
