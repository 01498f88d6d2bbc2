import { Fragment, type ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso/router'
import { useEffect, useRef, useState } from 'preact/hooks'
import { attempts, isReachable } from './client.ts'
import { Icon } from './icon.tsx'
import { arrowLeftIcon, bookIcon, threeBarsIcon, xIcon } from './icons.ts'
import { Mark } from './mark.tsx'
import { PaletteButton, type Place, type PlaceFinder } from './palette.tsx'
import { SchemeSwitch } from './scheme-switch.tsx'

export interface NavigationEntry {
  readonly path: string
  readonly title: string
  readonly icon: string
  /** The heading above it and the entries after it. */
  readonly heading?: string
}

/** The frame around every page: the current page, the navigation, and who is signed in. */
export function Shell({
  name,
  pages,
  finder,
  who,
  note,
  foot,
  children,
}: {
  name: string
  pages: readonly NavigationEntry[]
  /** Visitors find nothing: they are not signed in. */
  finder?: PlaceFinder
  /** The person who is signed in; undefined after a key, a link or the operator token. */
  who?: string | undefined
  /** Above every page. */
  note?: string | undefined
  foot: ComponentChildren
  children: ComponentChildren
}) {
  const { path } = useLocation()
  const main = useRef<HTMLElement>(null)
  const [isOpen, setOpen] = useState(false)
  const isFirst = useRef(true)
  useEffect(() => {
    // Moves the focus, so that a screen reader announces the new page. The first page has it anyway.
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
    setOpen(false)
    window.scrollTo(0, 0)
  }, [path])
  // The root is the first page, whatever its own address is.
  const isCurrent = (page: string): boolean =>
    path === '/console'
      ? page === pages[0]?.path
      : path === page || (page !== '/console' && path.startsWith(`${page}/`))
  /** The list that the page of one thing belongs to. */
  const list = pages.find(({ path: page }) => isCurrent(page) && path.startsWith(`${page}/`))
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class={isOpen ? 'side open' : 'side'}>
        <div class="side-head">
          <div class="brand">
            <Mark />
            Weir <small>{name}</small>
          </div>
          {finder ? <PaletteButton pages={placesOf(pages)} finder={finder} /> : null}
          <button
            type="button"
            class="menu-button"
            aria-label={isOpen ? 'Close the menu' : 'Menu'}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon of={isOpen ? xIcon : threeBarsIcon} />
          </button>
        </div>
        <nav aria-label="Pages">
          {pages.map(({ path: page, title, icon, heading }) => (
            <Fragment key={page}>
              {heading === undefined ? null : <h2>{heading}</h2>}
              <a href={page} aria-current={isCurrent(page) ? 'page' : undefined}>
                <Icon of={icon} />
                {title}
              </a>
            </Fragment>
          ))}
        </nav>
        <div class="foot">
          <a href="/docs">
            <Icon of={bookIcon} />
            API docs
          </a>
          {who === undefined ? null : (
            <p class="who" title={who}>
              {who}
            </p>
          )}
          {foot}
          <SchemeSwitch />
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
        {note === undefined ? null : <p class="notice small">{note}</p>}
        {list === undefined ? null : (
          <a class="to-list" href={list.path}>
            <Icon of={arrowLeftIcon} />
            {list.title}
          </a>
        )}
        {children}
      </main>
    </div>
  )
}

const placesOf = (pages: readonly NavigationEntry[]): readonly Place[] =>
  [...pages, { path: '/docs', title: 'API docs', icon: bookIcon }].map(({ path, title, icon }) => ({
    kind: 'Page',
    title,
    icon,
    href: path,
  }))
