// Written by npm run references from the OpenAPI document.

export interface Operations {
  signIn: {
    path: {}
    query: {}
    body: { key?: string; link?: string }
    answer: {
      object: 'session'
      workspace: string
      key_id: string | null
      key_name: string | null
      expires_at: string
      requests_per_minute: number
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      spent: string
    }
  }
  getSession: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'session'
      workspace: string
      key_id: string | null
      key_name: string | null
      expires_at: string
      requests_per_minute: number
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      spent: string
    }
  }
  signOut: {
    path: {}
    query: {}
    body: undefined
    answer: { signed_out: true }
  }
}

export const operations = {
  signIn: ['POST', '/console/api/session'],
  getSession: ['GET', '/console/api/session'],
  signOut: ['DELETE', '/console/api/session'],
} as const satisfies Record<keyof Operations, readonly [method: string, path: string]>
