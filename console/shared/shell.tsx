import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso/router'
import { useEffect, useRef } from 'preact/hooks'
import { attempts, isReachable } from './client.ts'

export interface NavigationEntry {
  readonly path: string
  readonly title: string
}

/** The frame around every page: the current page, the navigation, and who is signed in. */
export function Shell({
  name,
  pages,
  foot,
  children,
}: {
  name: string
  pages: readonly NavigationEntry[]
  foot: ComponentChildren
  children: ComponentChildren
}) {
  const { path } = useLocation()
  const main = useRef<HTMLElement>(null)
  const bar = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    // Moves the focus, so that a screen reader announces the new page. The first page has it anyway.
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
    // On a phone the pages are in one line, which may be longer than the screen.
    bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
    window.scrollTo(0, 0)
  }, [path])
  // The root is the first page, whatever its own address is.
  const isCurrent = (page: string): boolean =>
    path === '/console'
      ? page === pages[0]?.path
      : path === page || (page !== '/console' && path.startsWith(`${page}/`))
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="side">
        <div class="brand">
          Weir <small>{name}</small>
        </div>
        <nav aria-label="Pages" ref={bar}>
          {pages.map((page) => (
            <a key={page.path} href={page.path} aria-current={isCurrent(page.path) ? 'page' : undefined}>
              {page.title}
            </a>
          ))}
        </nav>
        <div class="foot">
          <a href="/docs">API docs</a>
          {foot}
        </div>
      </header>
      <main id="content" ref={main} tabIndex={-1}>
        {isReachable.value ? null : (
          <div class="notice warn" role="status">
            <strong>The service cannot be reached</strong>What you see may be out of date or missing.{' '}
            <button type="button" class="plain" onClick={() => attempts.value++}>
              Try again
            </button>
          </div>
        )}
        {children}
      </main>
    </div>
  )
}
