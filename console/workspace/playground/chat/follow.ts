import { useSignal, type ReadonlySignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** Scrolls with content that grows, until the reader scrolls up; again when the reader is back at the end. */
export function useFollow(): {
  readonly frame: RefObject<HTMLDivElement | null>
  readonly content: RefObject<HTMLDivElement | null>
  readonly isFollowing: ReadonlySignal<boolean>
  readonly onScroll: () => void
  readonly toEnd: () => void
} {
  const frame = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isFollowing = useSignal(true)
  const lastTop = useRef(0)

  function toEnd(): void {
    isFollowing.value = true
    frame.current?.scrollTo({ top: frame.current.scrollHeight })
  }

  function onScroll(): void {
    const { scrollTop, scrollHeight, clientHeight } = frame.current ?? {
      scrollTop: 0,
      scrollHeight: 0,
      clientHeight: 0,
    }
    // The content may have grown since this page scrolled to its end. Only a reader scrolls up.
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX
    if (isAtEnd || scrollTop < lastTop.current) isFollowing.value = isAtEnd
    lastTop.current = scrollTop
  }

  useEffect(() => {
    const observer = new ResizeObserver(() => isFollowing.value && toEnd())
    for (const { current } of [frame, content]) if (current) observer.observe(current)
    return () => observer.disconnect()
  }, [])
  return { frame, content, isFollowing, onScroll, toEnd }
}

const NEAR_PX = 40
