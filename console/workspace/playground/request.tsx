import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SampleBody } from '../../../src/server/docs/code-samples.ts'
import { Problem, useAction } from '../../shared/action.tsx'
import { send } from '../../shared/client.ts'
import { Form } from '../../shared/form.tsx'
import { RequestCode } from '../../shared/request-code.tsx'
import { Outcome, type Measured } from './outcome.tsx'
import { Waiting } from './waiting.tsx'

/** A request with one whole answer: the request, the answer, its usage, and the same as code. */
export interface Answered<Result> {
  readonly result: Result
  readonly measured: Measured
}

export type RequestBody = { readonly json: object } | { readonly form: FormData }

export function useRequest<Result>(path: string) {
  const [answered, setAnswered] = useState<Answered<Result>>()
  const action = useAction()
  const controller = useRef<AbortController | undefined>(undefined)
  // Leaving the page stops the request.
  useEffect(() => () => controller.current?.abort(), [])

  /** Throws the message for the form. */
  async function submit(body: RequestBody, read: (response: Response) => Promise<Result>): Promise<void> {
    const current = new AbortController()
    controller.current = current
    const started = performance.now()
    try {
      const response = await send(`/api/v1${path}`, {
        method: 'POST',
        signal: current.signal,
        ...('json' in body
          ? { body: JSON.stringify(body.json), headers: { 'Content-Type': 'application/json' } }
          : { body: body.form }),
      })
      const result = await read(response)
      const requestId = response.headers.get('x-request-id') ?? ''
      setAnswered({ result, measured: { requestId, durationMs: performance.now() - started } })
    } catch (error) {
      throw current.signal.aborted ? new Error('Stopped.', { cause: error }) : error
    }
  }
  return { answered, action, submit, stop: () => controller.current?.abort() }
}

/** The frame of a playground with whole answers. */
export function RequestFrame<Result>({
  request: { answered, action, stop },
  title,
  isReady,
  submit,
  fields,
  code,
  model,
  show,
  children,
}: {
  request: ReturnType<typeof useRequest<Result>>
  title: string
  isReady: boolean
  submit: () => Promise<void>
  fields: ComponentChildren
  code: { readonly path: string; readonly body: SampleBody }
  model: string
  show: (result: Result) => ComponentChildren
  /** Below both. */
  children?: ComponentChildren
}) {
  const [isCodeShown, setCodeShown] = useState(false)
  return (
    <>
      <div class="columns">
        <Form class="panel stack" action={action} submit={submit}>
          {fields}
          <div class="row">
            <button class="primary" type="submit" disabled={action.isRunning || !isReady}>
              {action.isRunning ? 'Working …' : title}
            </button>
            <button type="button" disabled={!action.isRunning} onClick={stop}>
              Stop
            </button>
            <button type="button" aria-expanded={isCodeShown} onClick={() => setCodeShown(!isCodeShown)}>
              {isCodeShown ? 'Hide code' : 'Show code'}
            </button>
          </div>
          {isCodeShown ? <RequestCode path={code.path} body={code.body} /> : null}
        </Form>
        <section class="panel stack" aria-label="Answer" aria-live="polite" aria-busy={action.isRunning}>
          <Problem of={action} />
          <Waiting model={model} is={action.isRunning} />
          {answered === undefined ? <p class="soft">The answer appears here.</p> : show(answered.result)}
          {answered === undefined ? null : <Outcome of={answered.measured} />}
        </section>
      </div>
      {children}
    </>
  )
}
