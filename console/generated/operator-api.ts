// Written by npm run references from the OpenAPI document.

export interface Operations {
  listWorkspaces: {
    path: {}
    query: { search?: string; before?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        name: string
        requests_per_minute: number
        tokens_per_minute: number | null
        spend_limit: string | null
        spend_limit_kind: 'soft' | 'hard' | null
        buyer: {
          name: string | null
          abn: string | null
          address: string | null
          purchase_order: string | null
          email: string | null
        }
        created: string
      }[]
      next: string | null
    }
  }
  createWorkspace: {
    path: {}
    query: {}
    body: { name: string }
    answer: {
      id: string
      name: string
      requests_per_minute: number
      tokens_per_minute: number | null
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      buyer: {
        name: string | null
        abn: string | null
        address: string | null
        purchase_order: string | null
        email: string | null
      }
      created: string
    }
  }
  getWorkspace: {
    path: { workspace: string }
    query: {}
    body: undefined
    answer: {
      id: string
      name: string
      requests_per_minute: number
      tokens_per_minute: number | null
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      buyer: {
        name: string | null
        abn: string | null
        address: string | null
        purchase_order: string | null
        email: string | null
      }
      created: string
    }
  }
  changeWorkspace: {
    path: { workspace: string }
    query: {}
    body: {
      requests_per_minute?: number | null
      tokens_per_minute?: number | null
      spend_limit?: string | null
      spend_limit_kind?: 'soft' | 'hard'
      buyer?: {
        name?: string | null
        abn?: string | null
        address?: string | null
        purchase_order?: string | null
        email?: string | null
      }
    }
    answer: {
      id: string
      name: string
      requests_per_minute: number
      tokens_per_minute: number | null
      spend_limit: string | null
      spend_limit_kind: 'soft' | 'hard' | null
      buyer: {
        name: string | null
        abn: string | null
        address: string | null
        purchase_order: string | null
        email: string | null
      }
      created: string
    }
  }
  issueConsoleLink: {
    path: { workspace: string }
    query: {}
    body: undefined
    answer: { path: string; expires_at: string }
  }
  listKeys: {
    path: {}
    query: { workspace?: string; state?: 'valid'; before?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        redacted: string
        workspace: string
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
      }[]
      next: string | null
    }
  }
  createKey: {
    path: {}
    query: {}
    body: {
      workspace: string
      name?: string
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
    answer: { id: string; key: string; workspace: string; name?: string; expires_at?: string }
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
    answer: {
      id: string
      redacted: string
      workspace: string
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
      unreached: readonly string[]
    }
  }
  revokeKey: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      redacted: string
      workspace: string
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
      unreached: readonly string[]
    }
  }
  listSessions: {
    path: {}
    query: { before?: string; limit?: number }
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
      }[]
      next: string | null
    }
  }
  endSession: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      console: 'operator' | 'workspace'
      workspace: string | null
      who: string
      roles: readonly ('operator' | 'finance' | 'viewer' | 'member' | 'workspace_admin')[]
      started: string
      last_used: string
      expires_at: string
      address: string | null
    }
  }
  listWorkspacePrices: {
    path: { workspace: string }
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        model: string
        pricing: {
          input_per_million?: string
          output_per_million?: string
          cached_input_per_million?: string
          per_image?: string
          image_prices?: readonly {
            size: string
            quality?: 'standard' | 'hd' | 'low' | 'medium' | 'high'
            per_image: string
          }[]
          per_audio_minute?: string
          batch?:
            | string
            | { input_per_million?: string; output_per_million?: string; cached_input_per_million?: string }
        }
      }[]
    }
  }
  setWorkspacePrice: {
    path: { workspace: string; model: string }
    query: {}
    body: {
      input_per_million?: string
      output_per_million?: string
      cached_input_per_million?: string
      per_image?: string
      image_prices?: readonly {
        size: string
        quality?: 'standard' | 'hd' | 'low' | 'medium' | 'high'
        per_image: string
      }[]
      per_audio_minute?: string
      batch?: string | { input_per_million?: string; output_per_million?: string; cached_input_per_million?: string }
    }
    answer: {
      model: string
      pricing: {
        input_per_million?: string
        output_per_million?: string
        cached_input_per_million?: string
        per_image?: string
        image_prices?: readonly {
          size: string
          quality?: 'standard' | 'hd' | 'low' | 'medium' | 'high'
          per_image: string
        }[]
        per_audio_minute?: string
        batch?: string | { input_per_million?: string; output_per_million?: string; cached_input_per_million?: string }
      }
    }
  }
  clearWorkspacePrice: {
    path: { workspace: string; model: string }
    query: {}
    body: undefined
    answer: { model: string; pricing: null }
  }
  listUsage: {
    path: {}
    query: {
      workspace?: string
      from?: string
      to?: string
      group_by?: 'workspace' | 'model' | 'key' | 'day' | 'service_tier'
      limit?: number
      after?: string
      model?: string
      key?: string
      service_tier?: 'default' | 'flex' | 'batch'
      price_versions?: string
      credit_note?: string
      format?: 'json' | 'csv' | 'jsonl'
    }
    body: undefined
    answer: {
      object: 'list'
      group_by?: string
      data: readonly {
        request_id?: string
        model?: string
        lane?: string
        endpoint?: string
        service_tier?: string
        key_id?: string
        max_tokens?: number
        input_tokens?: number
        cached_input_tokens?: number
        output_tokens?: number
        images?: number
        audio_ms?: number
        amount_pico_aud?: string
        estimated?: boolean
        outcome?: string
        http_status?: number | null
        error_code?: string | null
        price_version?: number
        queue_wait_ms?: number
        first_token_ms?: number | null
        duration_ms?: number
        started?: string
        settled?: string
        capacity_ms?: number
        corrects?: string
        reason?: string
        credit_note?: string | null
        requests?: number
        estimated_requests?: number
        cache_hit_rate?: number | null
        amount?: string
        workspace?: string
        key?: string
        day?: string
      }[]
      total?: {
        input_tokens: number
        cached_input_tokens: number
        output_tokens: number
        images: number
        audio_ms: number
        amount_pico_aud: string
        requests: number
        estimated_requests: number
        cache_hit_rate: number | null
        capacity_ms: number
        amount: string
      }
      has_more: boolean
      next: string | null
    }
  }
  listCacheUse: {
    path: {}
    query: { workspace?: string }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        workspace: string
        key: string
        model: string
        requests: number
        input_tokens: number
        cached_input_tokens: number
        cache_hit_rate: number
        misses: { first_use: number; prefix_changed: number; evicted: number; moved: number }
        latest_change: { at: string; message: number; after_character: number } | null
      }[]
    }
  }
  listRefused: {
    path: {}
    query: {
      workspace?: string
      from?: string
      to?: string
      key?: string
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
      model?: string
      status?: number
      before?: string
      request_id?: string
      limit?: number
    }
    body: undefined
    answer: {
      object: 'refused.report'
      unit: 'hour' | 'day'
      times: readonly number[]
      total: number
      codes: readonly {
        http_status: number | null
        error_code: string
        requests: number
        series: readonly { at: number; requests: number }[]
      }[]
      groups: readonly {
        workspace: string | null
        key_id: string | null
        http_status: number | null
        error_code: string
        requests: number
      }[]
      newest: readonly {
        request_id: string
        at: string
        workspace: string | null
        key_id: string | null
        endpoint: string | null
        model: string | null
        http_status: number
        error_code: string
        param: string | null
        reason: string
      }[]
      next: string | null
    }
  }
  getUsage: {
    path: { request_id: string }
    query: {}
    body: undefined
    answer: {
      workspace: string | null
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
    }
  }
  correctUsage: {
    path: { request_id: string }
    query: {}
    body: { reason: string }
    answer: { corrects: string }
  }
  listInvoices: {
    path: {}
    query: {
      workspace?: string
      state?: 'due' | 'overdue' | 'paid' | 'credited' | 'refund_due'
      before?: string
      limit?: number
    }
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
        email: {
          state: 'queued' | 'sent' | 'failed'
          recipient: string
          attempts: number
          sent_at: string | null
          next_attempt_at: string | null
          last_error: string | null
        } | null
      }[]
      next: string | null
    }
  }
  issueInvoice: {
    path: {}
    query: {}
    body: { workspace: string; period: string; preview_id?: string }
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  previewInvoice: {
    path: {}
    query: { format?: 'json' | 'html' | 'pdf' }
    body: { workspace: string; period: string }
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
      preview_id: string | null
    }
  }
  creditInvoice: {
    path: {}
    query: {}
    body: {
      workspace: string
      period: string
      reason: string
      all?: boolean
      requests?: readonly string[]
      amount?: string
    }
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  revokeInvoiceLinks: {
    path: {}
    query: {}
    body: undefined
    answer: { revoked: true }
  }
  getInvoice: {
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  sendInvoice: {
    path: { number: string }
    query: {}
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  listDrafts: {
    path: {}
    query: { period: string; after?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        workspace: string
        preview_id: string
        subtotal: string
        gst: string
        total: string
        lines: number
        requests: number
        ledger_rows: number
        warnings: readonly string[]
        obstacle: string | null
        previous: {
          number: string | null
          period: string
          total: string
          state: 'due' | 'overdue' | 'paid' | 'credited' | 'refund_due' | null
        } | null
      }[]
      next: string | null
    }
  }
  issueDrafts: {
    path: {}
    query: {}
    body: { period: string; drafts: readonly { workspace: string; preview_id: string }[] }
    answer: {
      object: 'list'
      data: readonly {
        workspace: string
        number: string | null
        total: string | null
        error: {
          code:
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
          message: string
        } | null
      }[]
    }
  }
  recordPayment: {
    path: { number: string }
    query: {}
    body: { paid_on: string; reference: string; amount?: string }
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  removePayment: {
    path: { number: string; payment: string }
    query: {}
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
      email: {
        state: 'queued' | 'sent' | 'failed'
        recipient: string
        attempts: number
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
      } | null
    }
  }
  reconcile: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'reconciliation'
      fits: boolean
      workspaces: number
      rows: number
      invoices: number
      amount_pico_aud: string
      problems: readonly {
        check: 'amount' | 'price_version' | 'tier' | 'correction' | 'credit' | 'sums' | 'invoice' | 'number' | 'refused'
        workspace: string | null
        subject: string
        message: string
      }[]
    }
  }
  alertEndpoints: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        name: string
        kind: 'webhook' | 'email'
        url: string
        events: readonly string[] | null
        workspace: string | null
        disabled_at: string | null
      }[]
    }
  }
  testAlertEndpoint: {
    path: { name: string }
    query: {}
    body: undefined
    answer: {
      id: string
      event_id: string
      event: string
      endpoint: string
      state: 'queued' | 'sent' | 'failed'
      attempts: number
      created_at: string
      sent_at: string | null
      next_attempt_at: string | null
      last_error: string | null
      body: string
    }
  }
  alertDeliveries: {
    path: {}
    query: {
      state?: 'queued' | 'sent' | 'failed'
      event?:
        | 'spend.threshold_reached'
        | 'spend.limit_reached'
        | 'key.spend_threshold_reached'
        | 'key.spend_limit_reached'
        | 'engine.down'
        | 'engine.up'
        | 'lane.saturated'
        | 'lane.recovered'
        | 'invoice.issued'
        | 'invoice.paid'
        | 'invoice.overdue'
        | 'key.created'
        | 'key.revoked'
        | 'key.expiring'
        | 'download.finished'
        | 'webhook.test'
      endpoint?: string
      before?: string
      limit?: number
    }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        event_id: string
        event: string
        endpoint: string
        state: 'queued' | 'sent' | 'failed'
        attempts: number
        created_at: string
        sent_at: string | null
        next_attempt_at: string | null
        last_error: string | null
        body: string
      }[]
      next: string | null
    }
  }
  replayAlertDelivery: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      event_id: string
      event: string
      endpoint: string
      state: 'queued' | 'sent' | 'failed'
      attempts: number
      created_at: string
      sent_at: string | null
      next_attempt_at: string | null
      last_error: string | null
      body: string
    }
  }
  reloadAccounts: {
    path: {}
    query: {}
    body: undefined
    answer: { reloaded: true; unreached: readonly string[] }
  }
  reloadCatalog: {
    path: {}
    query: { force?: 'true' | 'false' }
    body: undefined
    answer: {
      reloaded: true
      models: number
      unreached: readonly string[]
      needs_restart: readonly { key: string; value: string }[]
    }
  }
  getModel: {
    path: { model: string }
    query: {}
    body: undefined
    answer: {
      id: string
      name: string
      description: string
      aliases: readonly string[]
      categories: readonly string[]
      context_length: number
      max_completion_tokens: number
      pricing: {
        input_per_million?: string
        output_per_million?: string
        cached_input_per_million?: string
        per_image?: string
        image_prices?: readonly {
          size: string
          quality?: 'standard' | 'hd' | 'low' | 'medium' | 'high'
          per_image: string
        }[]
        per_audio_minute?: string
        batch?: string | { input_per_million?: string; output_per_million?: string; cached_input_per_million?: string }
      }
    }
  }
  previewCatalog: {
    path: {}
    query: {}
    body: undefined
    answer: {
      file: string | null
      mistakes: readonly string[]
      needs_restart: readonly { key: string; value: string }[]
      losses: readonly string[]
      changes: readonly {
        model: string
        change: 'added' | 'removed' | 'changed'
        fields: readonly { field: string; before: string | null; after: string | null }[]
      }[]
    }
  }
  listEngines: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        lane: string
        model: string
        mode: 'serverless' | 'dedicated'
        workspace: string | null
        kind: string | null
        addresses: readonly {
          url: string
          up: boolean
          drained: boolean
          in_flight: number
          failures: number
          last_failure: string | null
          cache_tokens: number | null
          reported: { running: number; waiting: number; cache_use: number | null } | null
        }[]
        download: {
          state: 'not_downloaded' | 'downloading' | 'paused' | 'failed'
          received_bytes: number
          total_bytes: number
          problem: string | null
          message: string
        } | null
        on_demand: {
          state: 'stopped' | 'starting' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'stopping' | 'failed'
          waiting: number
          running: number
          pinned: boolean
          can_sleep: boolean
          device: string | null
          device_bytes: number | null
          needed_bytes: number
          memory_source: 'configured' | 'measured' | 'unmeasured' | null
          measured_bytes: number | null
          held_bytes: number
          start_ms: readonly number[]
          ready_in_ms: number | null
          problem: string | null
          last_lines: readonly string[]
        } | null
      }[]
      drained_without_engine: readonly string[]
    }
  }
  drainEngine: {
    path: {}
    query: {}
    body: { url: string }
    answer: { url: string; drained: boolean; in_flight: number }
  }
  undrainEngine: {
    path: {}
    query: {}
    body: { url: string }
    answer: { url: string; drained: boolean; in_flight: number }
  }
  orderEngine: {
    path: {}
    query: {}
    body: { lane: string; order: 'start' | 'stop' | 'sleep' | 'wake' | 'pin' | 'unpin' }
    answer: {
      lane: string
      state: 'stopped' | 'starting' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'stopping' | 'failed'
      waiting: number
      running: number
      pinned: boolean
      can_sleep: boolean
      device: string | null
      device_bytes: number | null
      needed_bytes: number
      memory_source: 'configured' | 'measured' | 'unmeasured' | null
      measured_bytes: number | null
      held_bytes: number
      start_ms: readonly number[]
      ready_in_ms: number | null
      problem: string | null
      last_lines: readonly string[]
    }
  }
  listLocalModels: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        model: string
        name: string
        categories: readonly string[]
        license: string
        catalog_models: readonly string[]
        shipped: boolean
        state: 'not_downloaded' | 'downloading' | 'paused' | 'ready' | 'failed'
        waiting: boolean
        bytes: number
        received_bytes: number
        bytes_per_second: number
        problem: string | null
        shared_with: readonly string[]
        memory: {
          needed_bytes: number
          available_bytes: number
          fits: 'now' | 'after_unloading' | 'no'
          loaded: boolean
        }
        requests: number
      }[]
      machine: {
        host: string
        directory: string
        disk: { size_bytes: number; free_bytes: number; reserved_bytes: number }
        memory: {
          machine_bytes: number
          budget_bytes: number
          loaded: readonly { model: string; runtime: 'onnx' | 'llama'; bytes: number; requests: number }[]
        }
        runtime: {
          state: 'not_downloaded' | 'downloading' | 'paused' | 'ready' | 'failed'
          bytes: number
          received_bytes: number
        }
      }
    }
  }
  pullModel: {
    path: {}
    query: {}
    body: { model: string }
    answer: {
      model: string
      name: string
      categories: readonly string[]
      license: string
      catalog_models: readonly string[]
      shipped: boolean
      state: 'not_downloaded' | 'downloading' | 'paused' | 'ready' | 'failed'
      waiting: boolean
      bytes: number
      received_bytes: number
      bytes_per_second: number
      problem: string | null
      shared_with: readonly string[]
      memory: { needed_bytes: number; available_bytes: number; fits: 'now' | 'after_unloading' | 'no'; loaded: boolean }
      requests: number
    }
  }
  pauseModel: {
    path: {}
    query: {}
    body: { model: string }
    answer: {
      model: string
      name: string
      categories: readonly string[]
      license: string
      catalog_models: readonly string[]
      shipped: boolean
      state: 'not_downloaded' | 'downloading' | 'paused' | 'ready' | 'failed'
      waiting: boolean
      bytes: number
      received_bytes: number
      bytes_per_second: number
      problem: string | null
      shared_with: readonly string[]
      memory: { needed_bytes: number; available_bytes: number; fits: 'now' | 'after_unloading' | 'no'; loaded: boolean }
      requests: number
    }
  }
  removeModel: {
    path: {}
    query: {}
    body: { model: string }
    answer: { model: string; freed_bytes: number; also_gone: readonly string[] }
  }
  listQueues: {
    path: {}
    query: {}
    body: undefined
    answer: {
      at: number
      lanes: readonly {
        lane: string
        in_flight_requests: number
        committed_tokens: number
        queue_depth: number
        batch: { in_flight_requests: number; committed_tokens: number; queue_depth: number }
        oldest_wait_ms: number
        wait_ms_p50: number | null
        wait_ms_p95: number | null
        limits: {
          token_budget: number
          max_concurrent_requests: number
          max_queue_depth: number
          max_wait_ms: number
          max_requests_per_workspace?: number
        }
      }[]
    }
  }
  simulateLimits: {
    path: {}
    query: {}
    body: {
      lane: string
      limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      }
      hours: number
      tokens_per_second?: number
    }
    answer: {
      engine: { tokens_per_second: number; prefill_tokens_per_second: number; source: 'recorded' | 'asked' | 'assumed' }
      current: {
        limits: {
          token_budget: number
          max_concurrent_requests: number
          max_queue_depth: number
          max_wait_ms: number
          max_requests_per_workspace?: number
        }
        requests: number
        admitted: number
        queue_full: number
        overloaded: number
        too_large: number
        wait_ms: { p50: number; p95: number; max: number } | null
        answer_ms: { p50: number; p95: number; max: number } | null
      }
      proposed: {
        limits: {
          token_budget: number
          max_concurrent_requests: number
          max_queue_depth: number
          max_wait_ms: number
          max_requests_per_workspace?: number
        }
        requests: number
        admitted: number
        queue_full: number
        overloaded: number
        too_large: number
        wait_ms: { p50: number; p95: number; max: number } | null
        answer_ms: { p50: number; p95: number; max: number } | null
      }
    }
  }
  listBatches: {
    path: {}
    query: { before?: string; limit?: number; workspace?: string }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        workspace: string
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
  getBatch: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      workspace: string
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
  cancelBatch: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      workspace: string
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
  listReplicas: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      coordination: 'alone' | 'joined' | 'apart' | 'stopped'
      answered_by: string
      data: readonly {
        name: string
        version: string
        started_at: string
        epoch: string | null
        in_flight_requests: number
        queue_depth: number
        journal_bytes: number
        journal_lag_ms: number
        draining: boolean
      }[]
    }
  }
  drainReplica: {
    path: { name: string }
    query: {}
    body: undefined
    answer: { name: string; asked: true }
  }
  getLaneLimits: {
    path: { lane: string }
    query: {}
    body: undefined
    answer: {
      lane: string
      limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      }
      batch_limits: {
        reserve_concurrent: number
        reserve_tokens: number
        max_share: number
        preempt: boolean
        max_queue_depth: number
      }
      flex: { max_wait_ms: number }
      limits_in_file: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      } | null
    }
  }
  setLaneLimits: {
    path: { lane: string }
    query: {}
    body: {
      token_budget: number
      max_concurrent_requests: number
      max_queue_depth: number
      max_wait_ms: number
      max_requests_per_workspace?: number
    }
    answer: {
      lane: string
      limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      }
      batch_limits: {
        reserve_concurrent: number
        reserve_tokens: number
        max_share: number
        preempt: boolean
        max_queue_depth: number
      }
      flex: { max_wait_ms: number }
      limits_in_file: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      } | null
    }
  }
  clearLaneLimits: {
    path: { lane: string }
    query: {}
    body: undefined
    answer: {
      lane: string
      limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      }
      batch_limits: {
        reserve_concurrent: number
        reserve_tokens: number
        max_share: number
        preempt: boolean
        max_queue_depth: number
      }
      flex: { max_wait_ms: number }
      limits_in_file: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      } | null
    }
  }
  usageReport: {
    path: {}
    query: {
      workspace?: string
      from: string
      to: string
      model?: string
      key?: string
      group_by?: 'model' | 'key' | 'workspace'
    }
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
    query: { workspace?: string; from: string; to: string; model?: string; key?: string }
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
  listRequests: {
    path: {}
    query: {
      workspace?: string
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
        workspace: string | null
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
  operatorHealth: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'health'
      is_ready: boolean
      is_draining: boolean
      engines: { up: number; down: number }
      database: 'up' | 'away'
      coordination: 'alone' | 'joined' | 'apart' | 'stopped'
      disk: { size_bytes: number; free_bytes: number }
    }
  }
  auditLog: {
    path: {}
    query: { before?: number; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: number
        at: string
        actor: string
        request_id: string
        action: string
        title: string
        subject: string
        request: string | null
        before: string | null
        after: string | null
        outcome: 'begun' | 'done' | 'refused'
      }[]
      next: number | null
    }
  }
  metrics: {
    path: {}
    query: {}
    body: undefined
    answer: unknown
  }
  health: {
    path: {}
    query: {}
    body: undefined
    answer: { status: 'alive' }
  }
  readiness: {
    path: {}
    query: {}
    body: undefined
    answer: {
      status: 'ready'
      engines: { up: number; down: number }
      coordination: 'alone' | 'joined' | 'apart'
      database: 'up' | 'away'
    }
  }
}

export const operations = {
  listWorkspaces: ['GET', '/admin/v1/workspaces', ['operator', 'finance', 'viewer']],
  createWorkspace: ['POST', '/admin/v1/workspaces', ['operator']],
  getWorkspace: ['GET', '/admin/v1/workspaces/{workspace}', ['operator', 'finance', 'viewer']],
  changeWorkspace: ['PATCH', '/admin/v1/workspaces/{workspace}', ['operator']],
  issueConsoleLink: ['POST', '/admin/v1/workspaces/{workspace}/console-links', ['operator']],
  listKeys: ['GET', '/admin/v1/keys', ['operator', 'viewer']],
  createKey: ['POST', '/admin/v1/keys', ['operator']],
  changeKey: ['PATCH', '/admin/v1/keys/{id}', ['operator']],
  revokeKey: ['DELETE', '/admin/v1/keys/{id}', ['operator']],
  listSessions: ['GET', '/admin/v1/sessions', ['operator', 'viewer']],
  endSession: ['DELETE', '/admin/v1/sessions/{id}', ['operator']],
  listWorkspacePrices: ['GET', '/admin/v1/workspaces/{workspace}/prices', ['operator', 'finance', 'viewer']],
  setWorkspacePrice: ['PUT', '/admin/v1/workspaces/{workspace}/prices/{model}', ['operator']],
  clearWorkspacePrice: ['DELETE', '/admin/v1/workspaces/{workspace}/prices/{model}', ['operator']],
  listUsage: ['GET', '/admin/v1/usage', ['operator', 'finance', 'viewer']],
  listCacheUse: ['GET', '/admin/v1/usage/cache', ['operator', 'finance', 'viewer']],
  listRefused: ['GET', '/admin/v1/usage/refused', ['operator', 'finance', 'viewer']],
  getUsage: ['GET', '/admin/v1/usage/{request_id}', ['operator', 'finance', 'viewer']],
  correctUsage: ['POST', '/admin/v1/usage/{request_id}/correct', ['operator']],
  listInvoices: ['GET', '/admin/v1/invoices', ['operator', 'finance', 'viewer']],
  issueInvoice: ['POST', '/admin/v1/invoices', ['operator', 'finance']],
  previewInvoice: ['POST', '/admin/v1/invoices/preview', ['operator', 'finance', 'viewer']],
  creditInvoice: ['POST', '/admin/v1/invoices/credit', ['operator', 'finance']],
  revokeInvoiceLinks: ['POST', '/admin/v1/invoices/revoke-links', ['operator']],
  getInvoice: ['GET', '/admin/v1/invoices/{number}', ['operator', 'finance', 'viewer']],
  sendInvoice: ['POST', '/admin/v1/invoices/{number}/email', ['operator', 'finance']],
  listDrafts: ['GET', '/admin/v1/invoices/drafts', ['operator', 'finance', 'viewer']],
  issueDrafts: ['POST', '/admin/v1/invoices/drafts/issue', ['operator', 'finance']],
  recordPayment: ['POST', '/admin/v1/invoices/{number}/payments', ['operator', 'finance']],
  removePayment: ['DELETE', '/admin/v1/invoices/{number}/payments/{payment}', ['operator', 'finance']],
  reconcile: ['GET', '/admin/v1/reconcile', ['operator', 'finance', 'viewer']],
  alertEndpoints: ['GET', '/admin/v1/alerts/endpoints', ['operator', 'viewer']],
  testAlertEndpoint: ['POST', '/admin/v1/alerts/endpoints/{name}/test', ['operator']],
  alertDeliveries: ['GET', '/admin/v1/alerts/deliveries', ['operator', 'viewer']],
  replayAlertDelivery: ['POST', '/admin/v1/alerts/deliveries/{id}/replay', ['operator']],
  reloadAccounts: ['POST', '/admin/v1/accounts/reload', ['operator']],
  reloadCatalog: ['POST', '/admin/v1/catalog/reload', ['operator']],
  getModel: ['GET', '/admin/v1/models/{model}', ['operator', 'viewer']],
  previewCatalog: ['POST', '/admin/v1/catalog/preview', ['operator', 'viewer']],
  listEngines: ['GET', '/admin/v1/engines', ['operator', 'viewer']],
  drainEngine: ['POST', '/admin/v1/engines/drain', ['operator']],
  undrainEngine: ['POST', '/admin/v1/engines/undrain', ['operator']],
  orderEngine: ['POST', '/admin/v1/engines/orders', ['operator']],
  listLocalModels: ['GET', '/admin/v1/local-models', ['operator', 'viewer']],
  pullModel: ['POST', '/admin/v1/local-models/download', ['operator']],
  pauseModel: ['POST', '/admin/v1/local-models/pause', ['operator']],
  removeModel: ['POST', '/admin/v1/local-models/remove', ['operator']],
  listQueues: ['GET', '/admin/v1/queues', ['operator', 'viewer']],
  simulateLimits: ['POST', '/admin/v1/queues/simulate', ['operator', 'viewer']],
  listBatches: ['GET', '/admin/v1/batches', ['operator', 'viewer']],
  getBatch: ['GET', '/admin/v1/batches/{id}', ['operator', 'viewer']],
  cancelBatch: ['POST', '/admin/v1/batches/{id}/cancel', ['operator']],
  listReplicas: ['GET', '/admin/v1/replicas', ['operator', 'viewer']],
  drainReplica: ['POST', '/admin/v1/replicas/{name}/drain', ['operator']],
  getLaneLimits: ['GET', '/admin/v1/queues/{lane}', ['operator', 'viewer']],
  setLaneLimits: ['PUT', '/admin/v1/queues/{lane}', ['operator']],
  clearLaneLimits: ['DELETE', '/admin/v1/queues/{lane}', ['operator']],
  usageReport: ['GET', '/admin/v1/reports/usage', ['operator', 'finance', 'viewer']],
  latencyReport: ['GET', '/admin/v1/reports/latency', ['operator', 'finance', 'viewer']],
  listRequests: ['GET', '/admin/v1/requests', ['operator', 'finance', 'viewer']],
  operatorHealth: ['GET', '/admin/v1/health', ['operator', 'viewer']],
  auditLog: ['GET', '/admin/v1/audit-log', ['operator', 'viewer']],
  metrics: ['GET', '/metrics', ['operator', 'viewer']],
  health: ['GET', '/healthz'],
  readiness: ['GET', '/readyz'],
} as const satisfies Record<keyof Operations, readonly [method: string, path: string, roles?: readonly string[]]>
