/** The fields of every request's log line. */
export interface RequestLine {
  readonly status: number
  readonly [detail: string]: Detail
}

/** Fields that only some lines have: the code of a refusal, or the model and what the request used. */
export interface RequestNotes {
  readonly code?: string
  readonly [detail: string]: Detail
}

type Detail = string | number | null | undefined
