import { useLocation } from 'preact-iso/router'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useData } from './data.ts'
import { Icon } from './icon.tsx'
import { pulseIcon, searchIcon } from './icons.ts'
import { requestPath } from './request-path.ts'

/** One field that finds pages, models, keys, workspaces and requests, and opens what is chosen. */

export interface Place {
  readonly kind: 'Page' | 'Model' | 'Key' | 'Workspace' | 'Request'
  readonly title: string
  /** Found too, and shown beside the title. */
  readonly note?: string
  readonly icon: string
  readonly href: string
}

export interface PlaceFinder {
  /** What a console has few of. It is loaded once, when the palette opens. */
  readonly known: (signal: AbortSignal) => Promise<readonly Place[]>
  /** What there may be thousands of: the service searches. */
  readonly search?: (text: string, signal: AbortSignal) => Promise<readonly Place[]>
}

const SHOWN = 10
const PAUSE_MS = 200
const REQUEST_ID = /^[\w-]{16,100}$/
const isMac = navigator.platform.startsWith('Mac')

/** The button, and the palette in front of the page while it is open. */
export function PaletteButton({ pages, finder }: { pages: readonly Place[]; finder: PlaceFinder }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const open = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(isMac ? event.metaKey : event.ctrlKey)) return
      event.preventDefault()
      // Not over a question that has to be answered first.
      if (document.querySelector('dialog[open]') === null) setOpen(true)
    }
    document.addEventListener('keydown', open)
    return () => document.removeEventListener('keydown', open)
  }, [])
  return (
    <>
      <button type="button" class="palette-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon of={searchIcon} />
        <span>Jump to …</span>
        <kbd aria-hidden="true">{isMac ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      {isOpen ? <Palette pages={pages} finder={finder} close={() => setOpen(false)} /> : null}
    </>
  )
}

function Palette({
  pages,
  finder: { known, search },
  close,
}: {
  pages: readonly Place[]
  finder: PlaceFinder
  close: () => void
}) {
  const { route } = useLocation()
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const typed = text.trim()
  const paused = useSettled(typed)
  const listed = useData(known)
  const searched = useData(async (signal) => (paused === '' ? [] : ((await search?.(paused, signal)) ?? [])), [paused])
  const all = [
    ...(REQUEST_ID.test(typed) ? [requestPlace(typed)] : []),
    ...fitting([...pages, ...(listed.state === 'ready' ? listed.data : [])], typed),
    // Those of an earlier text do not fit any more.
    ...(searched.state === 'ready' ? fitting(searched.data, typed) : []),
  ]
  const found = all.slice(0, SHOWN)
  const current = Math.min(chosen, found.length - 1)

  useEffect(() => dialog.current?.showModal(), [])
  useEffect(() => {
    dialog.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [current])

  function open(place: Place | undefined): void {
    if (!place) return
    // Not with the dialog's own event, which arrives later: the palette may be open again by then.
    close()
    if (place.href.startsWith('/console')) route(place.href)
    else location.assign(place.href)
  }

  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && found.length > 0) setChosen((current + step + found.length) % found.length)
    else if (event.key === 'Enter') open(found[current])
    else return
    event.preventDefault()
  }

  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Jump to"
      closedby="any"
      onClose={close}
      // Where closedby is not known: a click beside the palette is a click on the dialog itself.
      onClick={({ target }) => target === dialog.current && dialog.current?.close()}
    >
      <div class="palette-field">
        <Icon of={searchIcon} />
        <input
          role="combobox"
          aria-label="Find pages, models, keys and requests"
          aria-expanded="true"
          aria-autocomplete="list"
          aria-controls="places"
          aria-activedescendant={found.length > 0 ? `place-${current}` : undefined}
          placeholder="Page, model, key or request id"
          autofocus
          spellcheck={false}
          autocomplete="off"
          maxLength={200}
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={onKeyDown}
        />
        <button type="button" class="plain" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
      <ul id="places" role="listbox" aria-label="Found">
        {found.map((place, index) => (
          <li
            key={place.kind + place.href + place.title}
            id={`place-${index}`}
            role="option"
            aria-selected={index === current}
            onPointerMove={() => setChosen(index)}
            onClick={() => open(place)}
          >
            <Icon of={place.icon} />
            <span class="place-title">
              {place.title} {place.note === undefined ? null : <small>{place.note}</small>}
            </span>
            <span class="place-kind">{place.kind}</span>
          </li>
        ))}
      </ul>
      <p class="palette-foot" role="status">
        {found.length === 0
          ? 'Nothing found. A request is found by its whole id.'
          : `${all.length > SHOWN ? `The first ${SHOWN} of ${all.length}` : all.length} found`}
      </p>
    </dialog>
  )
}

function requestPlace(id: string): Place {
  return { kind: 'Request', title: `Open request ${id}`, icon: pulseIcon, href: requestPath(id) }
}

/** Those that have every word, or are of that kind; first those whose title begins with the text. */
function fitting(places: readonly Place[], text: string): readonly Place[] {
  const words = text.toLowerCase().split(/\s+/)
  const found = places.filter(({ title, note = '', kind }) => {
    const own = `${title} ${note}`.toLowerCase()
    return words.every((word) => own.includes(word) || kind.toLowerCase() === word)
  })
  const isFirst = ({ title }: Place): boolean => title.toLowerCase().startsWith(text.toLowerCase())
  return [...found.filter(isFirst), ...found.filter((it) => !isFirst(it))]
}

/** A text once it has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
