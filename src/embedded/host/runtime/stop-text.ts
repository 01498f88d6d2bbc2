/** Watches a stream of text for stop strings and holds back what might still become one. */
export class StopText {
  readonly #stops: readonly string[]
  #held = ''
  /** The stop string that was met. */
  found: string | undefined

  constructor(stops: readonly string[]) {
    this.#stops = stops
  }

  get stopped(): boolean {
    return this.found !== undefined
  }

  /** The part of the text so far that may be shown. Nothing of a stop string, nor what follows it, ever is. */
  push(text: string): string {
    if (this.#stops.length === 0) return text
    this.#held += text
    let end = Infinity
    for (const stop of this.#stops) {
      const index = this.#held.indexOf(stop)
      if (index >= 0 && index < end) [end, this.found] = [index, stop]
    }
    return this.#release(this.stopped ? end : this.#held.length - this.#suspectLength())
  }

  /** At the end of the text: what was held back in vain. */
  flush(): string {
    return this.stopped ? '' : this.#release(this.#held.length)
  }

  /** What followed the stop string. */
  remainder(): string {
    return this.#held.slice(this.found?.length ?? 0)
  }

  #release(length: number): string {
    const text = this.#held.slice(0, length)
    this.#held = this.#held.slice(length)
    return text
  }

  /** Length of the longest end of the held text that begins a stop string. */
  #suspectLength(): number {
    const longest = Math.max(...this.#stops.map((stop) => stop.length)) - 1
    for (let length = Math.min(longest, this.#held.length); length > 0; length--) {
      const end = this.#held.slice(-length)
      if (this.#stops.some((stop) => stop.startsWith(end))) return length
    }
    return 0
  }
}
