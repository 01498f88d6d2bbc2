import type { Signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import type { Question } from './conversation.ts'
import { imagesIn, readImages, Thumbnails } from './image-input.tsx'

/** Where the next message is written. It stays in place while the answer grows. */
export function Composer({
  draft,
  area,
  isRunning,
  stop,
  images: { isAllowed, note },
}: {
  draft: Signal<Question>
  area: RefObject<HTMLTextAreaElement | null>
  isRunning: boolean
  stop: () => void
  images: { readonly isAllowed: boolean; readonly note: string | undefined }
}) {
  const { text, images } = draft.value
  const files = useRef<HTMLInputElement>(null)
  async function attach(list: Iterable<File> | null | undefined): Promise<void> {
    const added = await readImages(list ?? [])
    draft.value = { ...draft.value, images: [...draft.value.images, ...added] }
  }
  return (
    <div
      class="composer"
      onDragOver={(event) => {
        if (isAllowed && event.dataTransfer?.types.includes('Files')) event.preventDefault()
      }}
      onDrop={(event) => {
        if (!isAllowed) return
        event.preventDefault()
        void attach(event.dataTransfer?.files)
      }}
    >
      <Thumbnails
        images={images}
        remove={(index) => (draft.value = { ...draft.value, images: images.filter((_, at) => at !== index) })}
      />
      {images.length === 0 || note === undefined ? null : <p class="small soft">{note}</p>}
      <textarea
        ref={area}
        aria-label="Message"
        placeholder="Write a message"
        rows={2}
        value={text}
        onInput={(event) => void (draft.value = { ...draft.value, text: event.currentTarget.value })}
        onPaste={(event) => {
          const pasted = isAllowed ? imagesIn(event.clipboardData?.files) : []
          if (pasted.length === 0) return
          event.preventDefault()
          void attach(pasted)
        }}
        onKeyDown={(event) => {
          if (!isSend(event)) return
          event.preventDefault()
          if (!isRunning && text.trim() !== '') event.currentTarget.form?.requestSubmit()
        }}
      />
      <div class="row apart">
        <div class="row">
          {isAllowed ? (
            <>
              <button type="button" onClick={() => files.current?.click()}>
                Attach images
              </button>
              <input
                ref={files}
                class="visually-hidden"
                type="file"
                aria-label="Images"
                tabIndex={-1}
                accept="image/png,image/jpeg,image/webp,image/gif"
                multiple
                onChange={(event) => {
                  const input = event.currentTarget
                  // The same file can be chosen again after it was removed.
                  void attach([...(input.files ?? [])]).then(() => (input.value = ''))
                }}
              />
            </>
          ) : null}
          <small class="soft">Enter sends, Shift and Enter starts a new line.</small>
        </div>
        {isRunning ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button class="primary" type="submit" disabled={text.trim() === ''}>
            Send
          </button>
        )}
      </div>
    </div>
  )
}

/** Enter sends, unless it begins a new line or ends a word of an input method. */
export function isSend(event: KeyboardEvent): boolean {
  return event.key === 'Enter' && !event.shiftKey && !event.isComposing
}
