/**
 * The docs page: search, tabs that change together, copy buttons, and "Try it". The key stays in the memory of this page:
 * it is in no storage, no cookie and no address, and it is sent to this origin alone.
 */

/** A longer answer is cut off. */
const SHOWN_CHARACTERS = 200_000
const TEXT = /^(text\/|application\/(json|x-ndjson))/

// Behind a proxy, only the browser knows for sure how the page was reached.
for (const element of document.querySelectorAll('.origin')) element.textContent = location.origin

const search = document.querySelector('input[type=search]')
const found = document.querySelector('#found')
const FOUND_MAX = 40

/** What can be found: operations by method, path and summary; fields and errors by their names and their section. */
const targets = [
  ...[...document.querySelectorAll('main > section > h2')].map((heading) => {
    const { id } = heading.parentElement
    const [summary] = heading.parentElement.querySelectorAll('p > strong:first-child')
    return { id, title: titleOf(heading), about: summary?.textContent ?? '' }
  }),
  ...[...document.querySelectorAll('dl > [id]')].map((field) => ({
    id: field.id,
    title: field.querySelector('code').textContent,
    about: titleOf(field.closest('section').querySelector('h2')),
  })),
]

function titleOf(heading) {
  return heading.textContent.replace(/#$/, '').trim()
}

function matches() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  return targets.filter(({ title, about }) => {
    const text = `${title} ${about}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

function showFound() {
  const isSearching = search.value.trim() !== ''
  found.hidden = !isSearching
  document.querySelector('#operations').hidden = isSearching
  const all = isSearching ? matches() : []
  found.replaceChildren(
    ...all.slice(0, FOUND_MAX).map(({ id, title, about }) => {
      const link = document.createElement('a')
      link.href = `#${encodeURIComponent(id)}`
      const note = document.createElement('small')
      note.textContent = about
      link.append(title, note)
      return link
    }),
  )
  const more = all.length > FOUND_MAX ? `, the first ${FOUND_MAX} are shown` : ''
  document.querySelector('nav [role=status]').textContent = isSearching ? `${all.length} found${more}` : ''
}

search.hidden = false
search.addEventListener('input', showFound)
search.addEventListener('keydown', ({ key }) => {
  if (key === 'Enter') found.querySelector('a')?.click()
  if (key !== 'Escape') return
  search.value = ''
  showFound()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.matches('input, textarea, select')) return
  event.preventDefault()
  search.focus()
})

/** Chooses a language in all samples. */
function chooseLanguage(language) {
  for (const input of document.querySelectorAll('.tabs input')) if (input.value === language) input.checked = true
}
for (const tabs of document.querySelectorAll('.tabs')) {
  tabs.addEventListener('change', ({ target }) => {
    const { top } = tabs.getBoundingClientRect()
    chooseLanguage(target.value)
    // Samples above have another height now. Keep this one where it is.
    scrollBy(0, tabs.getBoundingClientRect().top - top)
  })
}

for (const block of document.querySelectorAll('main pre:not(.try pre)')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => void copy(block.querySelector('code'), button))
  block.append(button)
}

/** Browsers allow the clipboard only on pages with HTTPS and on localhost. Elsewhere, select the text. */
async function copy(element, button) {
  try {
    await navigator.clipboard.writeText(element.textContent)
    button.textContent = 'Copied'
  } catch {
    getSelection().selectAllChildren(element)
    button.textContent = 'Press Ctrl+C'
  }
  setTimeout(() => (button.textContent = 'Copy'), 2000)
}

const keys = document.querySelectorAll('input[name=key]')
for (const input of keys) {
  input.addEventListener('input', () => {
    for (const other of keys) other.value = input.value
  })
}

for (const details of document.querySelectorAll('.try')) {
  details.hidden = false
  const form = details.querySelector('form')
  const [send, stop] = form.querySelectorAll('button')
  const say = (text) => (form.querySelector('[role=status]').textContent = text)
  const output = form.querySelector('pre')
  let controller

  stop.addEventListener('click', () => controller?.abort())
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    controller = new AbortController()
    void attempt(controller.signal)
  })

  async function attempt(signal) {
    send.disabled = true
    stop.disabled = false
    output.hidden = true
    output.firstChild.textContent = ''
    const started = performance.now()
    say('Waiting for the answer …')
    try {
      const response = await fetch(...requestOf(form, signal))
      const status = `${response.status} ${response.statusText}`
      say(`${status}, receiving …`)
      const note = await show(response, output)
      say(`${status}${note}, after ${((performance.now() - started) / 1000).toFixed(1)} s`)
    } catch (error) {
      say(signal.aborted ? 'Stopped.' : `The request failed: ${error.message}`)
    } finally {
      send.disabled = false
      stop.disabled = true
    }
  }
}

/** What the form says, as the arguments of fetch. */
function requestOf(form, signal) {
  let path = form.dataset.path
  const query = new URLSearchParams()
  const parts = new FormData()
  const headers = {}
  let body
  for (const [name, value] of new FormData(form)) {
    const [place, field] = name.split(/:(.*)/s)
    const isGiven = typeof value === 'string' ? value !== '' : value.size > 0
    if (place === 'key' && isGiven) headers.Authorization = `Bearer ${value.trim()}`
    if (place === 'path') path = path.replace(`{${field}}`, value.split('/').map(encodeURIComponent).join('/'))
    if (place === 'query' && isGiven) query.set(field, value)
    if (place === 'form' && isGiven) parts.append(field, value)
    if (place === 'body') body = value
  }
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json'
    if (form.elements.stream) body = withStream(body, form.elements.stream.checked)
  } else if (form.querySelector('[type=file]')) body = parts
  const search = query.size > 0 ? `?${query}` : ''
  return [
    location.origin + path + search,
    { method: form.dataset.method, headers, body, signal, credentials: 'omit', cache: 'no-store' },
  ]
}

/** The service reports what is wrong with a body that cannot be parsed. */
function withStream(body, stream) {
  try {
    return JSON.stringify({ ...JSON.parse(body), stream })
  } catch {
    return body
  }
}

/** Shows an answer as it arrives, and returns a summary of it. */
async function show(response, output) {
  const type = response.headers.get('content-type') ?? ''
  if (!TEXT.test(type)) return `, ${type}, ${(await response.arrayBuffer()).byteLength} bytes`
  output.hidden = false
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
    output.firstChild.textContent = text.slice(0, SHOWN_CHARACTERS)
    if (text.length > SHOWN_CHARACTERS) {
      await reader.cancel()
      return ', cut off here'
    }
  }
  if (type.startsWith('application/json')) output.firstChild.textContent = JSON.stringify(JSON.parse(text), null, 2)
  return ''
}
