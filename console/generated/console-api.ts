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
      person: string | null
      role: 'member' | 'workspace_admin'
      workspaces: readonly string[]
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
      person: string | null
      role: 'member' | 'workspace_admin'
      workspaces: readonly string[]
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
  moveSession: {
    path: {}
    query: {}
    body: { workspace: string }
    answer: {
      object: 'session'
      workspace: string
      key_id: string | null
      key_name: string | null
      person: string | null
      role: 'member' | 'workspace_admin'
      workspaces: readonly string[]
      expires_at: string
      requests_per_minute: number
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      spent: string
    }
  }
  ownSessions: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        console: 'operator' | 'workspace'
        workspace: string | null
        who: string
        roles: readonly ('operator' | 'finance' | 'viewer' | 'member' | 'workspace_admin')[]
        started: string
        last_used: string
        expires_at: string
        address: string | null
        is_current: boolean
      }[]
    }
  }
  endOwnSession: {
    path: { id: string }
    query: {}
    body: undefined
    answer: { ended: true }
  }
  keys: {
    path: {}
    query: { state?: 'valid'; before?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        redacted: string
        name: string | null
        created: string
        expires_at: string | null
        last_used_at: string | null
        revoked: string | null
        manage_keys: boolean
        requests_per_minute: number | null
        tokens_per_minute: number | null
        spend_per_day: string | null
        spend_per_month: string | null
        allowed_models: readonly string[] | null
        allowed_endpoints:
          | readonly (
              | '/chat/completions'
              | '/responses'
              | '/messages'
              | '/completions'
              | '/embeddings'
              | '/rerank'
              | '/reranking'
              | '/images/generations'
              | '/audio/transcriptions'
              | '/audio/translations'
            )[]
          | null
        allowed_addresses: readonly string[] | null
        is_current: boolean
        requests: number
        input_tokens: number
        output_tokens: number
        amount: string
      }[]
      next: string | null
    }
  }
  makeKey: {
    path: {}
    query: {}
    body: {
      name: string
      expires_at?: string
      manage_keys?: boolean
      requests_per_minute?: number | null
      tokens_per_minute?: number | null
      spend_per_day?: string | null
      spend_per_month?: string | null
      allowed_models?: readonly string[] | null
      allowed_endpoints?:
        | readonly (
            | '/chat/completions'
            | '/responses'
            | '/messages'
            | '/completions'
            | '/embeddings'
            | '/rerank'
            | '/reranking'
            | '/images/generations'
            | '/audio/transcriptions'
            | '/audio/translations'
          )[]
        | null
      allowed_addresses?: readonly string[] | null
    }
    answer: { id: string; key: string; name: string }
  }
  changeKey: {
    path: { id: string }
    query: {}
    body: {
      manage_keys?: boolean
      name?: string
      expires_at?: string | null
      requests_per_minute?: number | null
      tokens_per_minute?: number | null
      spend_per_day?: string | null
      spend_per_month?: string | null
      allowed_models?: readonly string[] | null
      allowed_endpoints?:
        | readonly (
            | '/chat/completions'
            | '/responses'
            | '/messages'
            | '/completions'
            | '/embeddings'
            | '/rerank'
            | '/reranking'
            | '/images/generations'
            | '/audio/transcriptions'
            | '/audio/translations'
          )[]
        | null
      allowed_addresses?: readonly string[] | null
    }
    answer: { id: string; name: string | null; expires_at: string | null }
  }
  endKey: {
    path: { id: string }
    query: {}
    body: undefined
    answer: { id: string; revoked: string }
  }
  usageReport: {
    path: {}
    query: { from: string; to: string; model?: string; key?: string; group_by?: 'model' | 'key' }
    body: undefined
    answer: {
      object: 'usage.report'
      unit: 'hour' | 'day'
      times: readonly number[]
      total: {
        requests: number
        input_tokens: number
        cached_input_tokens: number
        output_tokens: number
        images: number
        audio_ms: number
        amount: string
      }
      series: readonly {
        at: number
        requests: number
        input_tokens: number
        cached_input_tokens: number
        output_tokens: number
        images: number
        audio_ms: number
        amount: string
      }[]
      groups: readonly {
        group: string
        requests: number
        input_tokens: number
        cached_input_tokens: number
        output_tokens: number
        images: number
        audio_ms: number
        amount: string
        series: readonly { at: number; requests: number; amount: string }[]
      }[]
    }
  }
  latencyReport: {
    path: {}
    query: { from: string; to: string; model?: string; key?: string; group_by?: 'model' | 'key' }
    body: undefined
    answer: {
      object: 'latency.report'
      unit: 'hour' | 'day'
      requests: number
      of_requests: number
      is_complete: boolean
      buckets: readonly {
        at: number
        requests: number
        failed: number
        queue_wait_ms: { p50: number | null; p95: number | null }
        first_token_ms: { p50: number | null; p95: number | null }
        duration_ms: { p50: number | null; p95: number | null }
        tokens_per_second: { p50: number | null; p95: number | null }
      }[]
      groups: readonly {
        group: string
        requests: number
        buckets: readonly {
          at: number
          requests: number
          failed: number
          queue_wait_ms: { p50: number | null; p95: number | null }
          first_token_ms: { p50: number | null; p95: number | null }
          duration_ms: { p50: number | null; p95: number | null }
          tokens_per_second: { p50: number | null; p95: number | null }
        }[]
      }[]
    }
  }
  monthReport: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'month.report'
      month: string
      from: number
      to: number
      now: number
      spent: string
      pace_days: number
      per_day: string | null
      forecast: string | null
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      reaches_limit_at: string | null
    }
  }
  requests: {
    path: {}
    query: {
      from?: string
      to?: string
      model?: string
      key?: string
      status?: number
      code?:
        | 'invalid_json'
        | 'missing_required_parameter'
        | 'invalid_type'
        | 'invalid_value'
        | 'unsupported_parameter'
        | 'unsupported_value'
        | 'unsupported_content'
        | 'wrong_endpoint'
        | 'context_length_exceeded'
        | 'token_budget_exceeded'
        | 'missing_api_key'
        | 'invalid_api_key'
        | 'spend_limit_exceeded'
        | 'key_not_allowed'
        | 'quota_exceeded'
        | 'role_not_allowed'
        | 'model_access_denied'
        | 'model_not_found'
        | 'not_found'
        | 'unknown_url'
        | 'method_not_allowed'
        | 'request_timeout'
        | 'conflict'
        | 'request_too_large'
        | 'unsupported_media_type'
        | 'headers_too_large'
        | 'rate_limit_exceeded'
        | 'queue_full'
        | 'workspace_queue_full'
        | 'no_idle_capacity'
        | 'internal_error'
        | 'upstream_error'
        | 'model_overloaded'
        | 'model_not_configured'
        | 'model_unavailable'
        | 'service_unavailable'
        | 'upstream_timeout'
      outcome?: 'failed' | 'completed' | 'engine_failed' | 'engine_broke' | 'caller_left' | 'interrupted' | 'withheld'
      before?: string
      limit?: number
    }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        request_id: string
        model: string
        lane: string
        endpoint: string
        service_tier: string
        key_id: string
        max_tokens: number
        input_tokens: number
        cached_input_tokens: number
        output_tokens: number
        images: number
        audio_ms: number
        amount_pico_aud: string
        estimated: boolean
        outcome: string
        http_status: number | null
        error_code: string | null
        price_version: number
        queue_wait_ms: number
        first_token_ms: number | null
        duration_ms: number
        started: string
        settled: string
        capacity_ms?: number
        corrects?: string
        reason?: string
        credit_note?: string | null
      }[]
      next: string | null
    }
  }
  invoices: {
    path: {}
    query: { state?: 'due' | 'overdue' | 'paid' | 'credited' | 'refund_due'; before?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        object: 'invoice'
        kind: 'tax_invoice' | 'adjustment_note'
        title: string
        number: string | null
        workspace: string
        period: string
        period_from: string
        period_to: string
        issued: string | null
        due: string | null
        currency: 'AUD'
        seller: { name: string; abn: string | null; address: string } | null
        buyer: { name: string; abn: string | null; address: string }
        purchase_order: string | null
        payment: string
        public_url: string | null
        adjusts: string | null
        reason: string | null
        replaces: string | null
        credited_by: readonly string[]
        lines: readonly {
          description: string
          model: string
          unit:
            | 'input_tokens'
            | 'cached_input_tokens'
            | 'output_tokens'
            | 'images'
            | 'audio_minutes'
            | 'capacity_hours'
            | 'rounding'
            | 'credit'
          quantity_text: string
          quantity: string
          quantity_ms: string | null
          rate: string
          rate_per: string
          amount: string
          price_versions: readonly number[]
          rows: string
          link?: string | null
        }[]
        lines_total: string
        subtotal: string
        gst: string
        total: string
        requests: number
        estimated_requests: number
        ledger_rows: number
        notices: readonly string[]
        warnings: readonly string[]
        balance: {
          state: 'due' | 'overdue' | 'paid' | 'credited' | 'refund_due'
          credited: string
          paid: string
          amount_due: string
          payments: readonly { id: number; paid_on: string; amount: string; reference: string; recorded: string }[]
        } | null
        links_until?: string | null
      }[]
      next: string | null
    }
  }
  invoice: {
    path: { number: string }
    query: { format?: 'json' | 'html' | 'pdf' }
    body: undefined
    answer: {
      object: 'invoice'
      kind: 'tax_invoice' | 'adjustment_note'
      title: string
      number: string | null
      workspace: string
      period: string
      period_from: string
      period_to: string
      issued: string | null
      due: string | null
      currency: 'AUD'
      seller: { name: string; abn: string | null; address: string } | null
      buyer: { name: string; abn: string | null; address: string }
      purchase_order: string | null
      payment: string
      public_url: string | null
      adjusts: string | null
      reason: string | null
      replaces: string | null
      credited_by: readonly string[]
      lines: readonly {
        description: string
        model: string
        unit:
          | 'input_tokens'
          | 'cached_input_tokens'
          | 'output_tokens'
          | 'images'
          | 'audio_minutes'
          | 'capacity_hours'
          | 'rounding'
          | 'credit'
        quantity_text: string
        quantity: string
        quantity_ms: string | null
        rate: string
        rate_per: string
        amount: string
        price_versions: readonly number[]
        rows: string
        link?: string | null
      }[]
      lines_total: string
      subtotal: string
      gst: string
      total: string
      requests: number
      estimated_requests: number
      ledger_rows: number
      notices: readonly string[]
      warnings: readonly string[]
      balance: {
        state: 'due' | 'overdue' | 'paid' | 'credited' | 'refund_due'
        credited: string
        paid: string
        amount_due: string
        payments: readonly { id: number; paid_on: string; amount: string; reference: string; recorded: string }[]
      } | null
      links_until?: string | null
    }
  }
  batches: {
    path: {}
    query: { before?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        filename: string | null
        endpoint: string
        status:
          | 'validating'
          | 'failed'
          | 'in_progress'
          | 'finalizing'
          | 'completed'
          | 'expired'
          | 'cancelling'
          | 'cancelled'
        paused: { code: string; message: string; since: string } | null
        request_counts: { total: number; completed: number; failed: number }
        created_at: string
      }[]
      next: string | null
    }
  }
  batch: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      filename: string | null
      endpoint: string
      status:
        | 'validating'
        | 'failed'
        | 'in_progress'
        | 'finalizing'
        | 'completed'
        | 'expired'
        | 'cancelling'
        | 'cancelled'
      paused: { code: string; message: string; since: string } | null
      request_counts: { total: number; completed: number; failed: number }
      created_at: string
      expires_at: string
      ended_at: string | null
      output_file_id: string | null
      error_file_id: string | null
      errors: {
        object: 'list'
        count: number
        data: readonly { code: string; message: string; param: string | null; line: number | null }[]
      } | null
      amount: string
      lines_per_minute: number | null
      expected_end: string | null
      failures: readonly { code: string; count: number; line: number; custom_id: string; message: string }[]
    }
  }
  live: {
    path: {}
    query: {}
    body: undefined
    answer: {
      at: number
      models: readonly {
        model: string
        available: boolean
        in_flight_requests: number
        max_concurrent_requests: number
        committed_tokens: number
        token_budget: number
        queue_depth: number
        wait_ms_p95: number | null
        admitted_per_minute: number | null
        admitted_requests: number
      }[]
      downloads: readonly {
        model: string
        received_bytes: number
        total_bytes: number | null
        problem: string | null
      }[]
    }
  }
  publicModels: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        object: 'model'
        created: number
        owned_by: string
        name: string
        context_length: number
        max_completion_tokens: number
        default_max_tokens: number
        architecture: {
          modality: string
          input_modalities: readonly string[]
          output_modalities: readonly string[]
          tokenizer: string | null
          instruct_type: string | null
        }
        pricing: {
          currency: 'AUD'
          tax: 'excl_gst'
          prompt: string
          completion: string
          input_cache_read: string | null
          per_million_tokens: { input: string; output: string; cached_input: string | null }
          per_image: string | null
          image_prices: readonly { size: string; quality: string | null; per_image: string }[]
          per_audio_minute: string | null
          batch: { per_million_tokens: { input: string; output: string; cached_input: string | null } } | null
          dedicated_per_hour: string | null
          dedicated_per_hour_indicative?: boolean
        }
        model_categories: readonly ('llm' | 'vision' | 'embedding' | 'reranker' | 'image' | 'audio')[]
        supported_parameters: readonly string[]
        modes: readonly ('serverless' | 'dedicated')[]
        endpoints: readonly string[]
        available: boolean
        unavailable_reason?:
          | 'model_access_denied'
          | 'model_not_configured'
          | 'not_downloaded'
          | 'downloading'
          | 'model_unavailable'
        unavailable_message?: string
        engine?: {
          state: 'stopped' | 'starting' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'stopping' | 'failed'
          ready_in_ms: number | null
        }
      }[]
    }
  }
}

export const operations = {
  signIn: ['POST', '/console/api/session'],
  getSession: ['GET', '/console/api/session', ['member', 'workspace_admin']],
  signOut: ['DELETE', '/console/api/session', ['member', 'workspace_admin']],
  moveSession: ['PUT', '/console/api/session/workspace', ['member', 'workspace_admin']],
  ownSessions: ['GET', '/console/api/sessions', ['member', 'workspace_admin']],
  endOwnSession: ['DELETE', '/console/api/sessions/{id}', ['member', 'workspace_admin']],
  keys: ['GET', '/console/api/keys', ['member', 'workspace_admin']],
  makeKey: ['POST', '/console/api/keys', ['workspace_admin']],
  changeKey: ['PATCH', '/console/api/keys/{id}', ['workspace_admin']],
  endKey: ['DELETE', '/console/api/keys/{id}', ['workspace_admin']],
  usageReport: ['GET', '/console/api/reports/usage', ['member', 'workspace_admin']],
  latencyReport: ['GET', '/console/api/reports/latency', ['member', 'workspace_admin']],
  monthReport: ['GET', '/console/api/reports/month', ['member', 'workspace_admin']],
  requests: ['GET', '/console/api/requests', ['member', 'workspace_admin']],
  invoices: ['GET', '/console/api/invoices', ['workspace_admin']],
  invoice: ['GET', '/console/api/invoices/{number}', ['workspace_admin']],
  batches: ['GET', '/console/api/batches', ['member', 'workspace_admin']],
  batch: ['GET', '/console/api/batches/{id}', ['member', 'workspace_admin']],
  live: ['GET', '/console/api/live', ['member', 'workspace_admin']],
  publicModels: ['GET', '/console/api/public-models'],
} as const satisfies Record<keyof Operations, readonly [method: string, path: string, roles?: readonly string[]]>
