import { errorCauses, errorRemedies } from '../../shared/error-help.ts'
import { errorTable, type ErrorCode } from '../../shared/errors.ts'
import { escapeHtml } from '../../shared/html.ts'
import { themeHead, markImage } from '../theme/theme.ts'
import { documentedRoutes, type ApiDescription, type DocumentedRoute } from '../openapi.ts'
import type { Content, Route } from '../route.ts'
import { codeSamples, sdkSamples } from './code-samples.ts'
import { errorExamples } from './error-examples.ts'
import { fieldsOf, type Field } from './fields.ts'
import { sampleRequest } from './sample-request.ts'
import { tryForm } from './try-form.ts'

/** The addresses of what the page loads. */
export interface DocsAssets {
  readonly style: string
  readonly script: string
}

/** Replaced by the origin when the page is requested. */
const ORIGIN = 'http://origin.invalid'

/**
 * An API on one readable page, generated from its routes, for readers who reach it at an origin such as
 * `https://weir.example`. Only searching, copying and "Try it" need the script.
 */
export function docsPage(
  api: ApiDescription,
  routes: readonly Route[],
  assets: DocsAssets,
): (origin: string) => string {
  const documented = documentedRoutes(api, routes)
  const navigation = documented.map(
    ({ method, path, operation }) => `<a href="#${escapeHtml(operation.id)}"><b>${method}</b> ${breakable(path)}</a>`,
  )
  const pieces = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(api.title)} API</title>${themeHead}
<link rel="stylesheet" href="${assets.style}"><script src="${assets.script}" defer></script></head><body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Operations"><p class="title">${markImage}${escapeHtml(api.title)}</p>
<scheme-switch role="group" aria-label="Colours"><button type="button" value="light">Light</button><button type="button" value="dark">Dark</button><button type="button" value="system">System</button></scheme-switch>
<input type="search" aria-label="Search operations, fields and errors" placeholder="Search ( / )" autocomplete="off" hidden>
<div id="found" hidden></div><p role="status"></p>
<div id="operations">${navigation.join('')}<a href="#errors">Errors</a><a href="${api.documentPath}">openapi.json</a><a href="/console">Console</a></div></nav>
<main id="content">
<section id="introduction"><h1>${escapeHtml(api.title)} API</h1>
<p>The base address is <code>${ORIGIN}${escapeHtml(api.base)}</code>.</p>
${api.introduction}
</section>
${documented.map((route) => section(api, route)).join('\n')}
${errorSection()}
</main></body></html>`.split(ORIGIN)
  return (origin) => pieces.join(`<span class="origin">${escapeHtml(origin)}</span>`)
}

function section(api: ApiDescription, route: DocumentedRoute): string {
  const { method, path, operation } = route
  const { summary, description, parameters = {}, query, request, response, errors } = operation
  const id = escapeHtml(operation.id)
  const inPath = Object.entries(parameters).map(([name, it]): Field => {
    return { name, isRequired: true, type: `such as ${it.example}`, description: it.description }
  })
  const answers = Object.entries(response.content)
  return `<section id="${id}"><h2><b>${method}</b> ${escapeHtml(path)}${anchor(id, `${method} ${path}`)}</h2>
<p><strong>${escapeHtml(summary)}.</strong> ${escapeHtml(description)}</p>
<div class="columns"><div>
${inPath.length > 0 || query ? group(`${id}.parameters`, 'Parameters', '', [...inPath, ...(query ? fieldsOf(query) : [])], requiredOnes) : ''}
${request ? group(`${id}.request`, 'Request', request.contentType, fieldsOf(request.schema), requiredOnes) : ''}
${answers.map(([type, content]) => answerGroup(id, response.status, type, content)).join('\n')}
${errors.length > 0 ? `${heading(`${id}.errors`, 'Errors', '')}<p>${errors.map(errorLink).join(', ')}</p>` : ''}
</div><div>
${samples(id, api, route)}
${tryForm(api, route)}
${answers.map(([type, content]) => example(type, content)).join('\n')}
</div></div></section>`
}

/** Tabs that need no script: the style shows the sample of the chosen language. */
function samples(id: string, api: ApiDescription, route: DocumentedRoute): string {
  const request = sampleRequest(api, route, ORIGIN)
  const { variable, body } = request
  const sdk = variable && body ? sdkSamples({ base: ORIGIN + api.base, path: route.path, variable, body }) : undefined
  const languages = Object.entries({ ...codeSamples, ...sdk })
  const tabs = languages.map(
    ([language], index) =>
      `<label><input type="radio" name="${id}.language" value="${language}"${index === 0 ? ' checked' : ''}>${language}</label>`,
  )
  const blocks = languages.map(
    ([language, sample]) =>
      `<pre data-language="${language}"><code tabindex="0">${escapeHtml(sample(request))}</code></pre>`,
  )
  return `<h3 id="${id}.code">Code${anchor(`${id}.code`, 'the code')}</h3>
<div class="samples"><div class="tabs" role="radiogroup" aria-label="Language">${tabs.join('')}</div>${blocks.join('')}</div>`
}

function example(type: string, { example: value }: Content): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return `<details${type === 'application/json' ? ' open' : ''}><summary>Example answer: ${escapeHtml(type)}</summary><pre><code>${escapeHtml(text)}</code></pre></details>`
}

function answerGroup(id: string, status: number, type: string, { schema }: Content): string {
  const place = `${id}.answer-${type.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
  return group(place, `Answer ${status}`, type, fieldsOf(schema), optionalOnes)
}

/** A caller must know what it has to send, and which fields it cannot rely on receiving. */
const requiredOnes = (isRequired: boolean): string => (isRequired ? 'required' : '')
const optionalOnes = (isRequired: boolean): string => (isRequired ? '' : 'optional')

function group(
  id: string,
  title: string,
  contentType: string,
  fields: readonly Field[],
  remark: (isRequired: boolean) => string,
): string {
  const items = fields.map(({ name, isRequired, type, description }) => {
    const depth = name.split('.').length - 1
    const note = remark(isRequired)
    return `<div id="${escapeHtml(`${id}.${name}`)}" class="depth-${depth}"><dt>${code(name)}${note === '' ? '' : ` <em>${note}</em>`}</dt><dd><span class="type">${escapeHtml(sentence(type))}</span> ${escapeHtml(description)}</dd></div>`
  })
  return `${heading(id, title, contentType)}${items.length === 0 ? '' : `<dl>${items.join('')}</dl>`}`
}

function heading(id: string, title: string, contentType: string): string {
  const type = contentType === '' ? '' : ` <small>${escapeHtml(contentType)}</small>`
  return `<h3 id="${id}">${title}${type}${anchor(id, `${title} ${contentType}`)}</h3>`
}

/** A link to the section itself, to be copied. */
function anchor(id: string, name: string): string {
  return `<a class="anchor" href="#${id}" aria-label="Link to ${escapeHtml(name.trim())}">#</a>`
}

function errorSection(): string {
  const items = (Object.keys(errorTable) as ErrorCode[]).map((name) => {
    const { status, retryAfter } = errorTable[name]
    return `<div id="error-${name}"><dt>${code(name)} <em>${status}${retryText(retryAfter)}</em></dt><dd><span class="type">${marked(errorCauses[name])}</span> ${marked(errorRemedies[name])}</dd></div>`
  })
  return `<section id="errors"><h2>Errors${anchor('errors', 'Errors')}</h2>
<p>The body always has this form. If a response has <code>Retry-After</code>, wait that long and add some jitter.
With <code>X-Should-Retry: false</code>, waiting does not help: the same request would be refused again.</p>
<pre><code>${escapeHtml(JSON.stringify(errorExamples.invalid_value.body(), null, 2))}</code></pre>
<dl>${items.join('\n')}</dl></section>`
}

function errorLink(name: ErrorCode): string {
  return `<a href="#error-${name}">${code(name)}</a>`
}

/** Text with `code` in it. */
function marked(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? code(part) : escapeHtml(part)))
    .join('')
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

function code(text: string): string {
  return `<code>${escapeHtml(text)}</code>`
}

/** A path that breaks between its segments. */
function breakable(path: string): string {
  return escapeHtml(path).replaceAll('/', '<wbr>/')
}

function retryText(retryAfter: number | 'computed' | null): string {
  if (retryAfter === null) return ''
  return `, with Retry-After${retryAfter === 'computed' ? '' : `: ${retryAfter}`}`
}
