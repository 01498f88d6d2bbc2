// Written by npm run references from the OpenAPI document.

export interface Operations {
  chatCompletions: {
    path: {}
    query: {}
    body: {
      model: string
      messages: readonly {
        role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
        content?:
          | string
          | readonly (
              | { type: 'text'; text: string }
              | {
                  type: 'image_url'
                  image_url: { url: string; detail?: 'auto' | 'low' | 'high' | 'original' } | string
                }
            )[]
        name?: string
        tool_calls?: readonly { id: string; type: 'function'; function: { name: string; arguments: string } }[]
        tool_call_id?: string
        refusal?: string
        reasoning_content?: string
      }[]
      stream?: boolean
      stream_options?: { include_usage?: boolean }
      max_tokens?: number
      max_completion_tokens?: number
      temperature?: number
      top_p?: number
      frequency_penalty?: number
      presence_penalty?: number
      logprobs?: boolean
      top_logprobs?: number
      seed?: number
      n?: number
      stop?: string | readonly string[]
      tools?: readonly {
        type: 'function'
        function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean }
      }[]
      tool_choice?: 'none' | 'auto' | 'required' | { type: 'function'; function: { name: string } }
      parallel_tool_calls?: boolean
      response_format?:
        | { type: 'text' }
        | { type: 'json_object' }
        | {
            type: 'json_schema'
            json_schema: { name: string; description?: string; schema?: Record<string, unknown>; strict?: boolean }
          }
      logit_bias?: Record<string, number>
      top_k?: number
      min_p?: number
      repetition_penalty?: number
      reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
      chat_template_kwargs?: Record<string, unknown>
      user?: string
      metadata?: Record<string, string>
      store?: boolean
      service_tier?: 'auto' | 'default' | 'flex'
      safety_identifier?: string
      prompt_cache_key?: string
    }
    answer: {
      id: string
      object: 'chat.completion'
      created: number
      model: string
      choices: readonly {
        index: number
        message: {
          role: 'assistant'
          content: string | null
          refusal: string | null
          reasoning_content?: string
          tool_calls?: readonly { id: string; type: 'function'; function: { name: string; arguments: string } }[]
        }
        logprobs: Record<string, unknown> | null
        finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
      }[]
      service_tier?: 'flex' | 'batch'
      usage: {
        prompt_tokens: number
        completion_tokens: number
        total_tokens: number
        prompt_tokens_details: { cached_tokens: number }
        completion_tokens_details: { reasoning_tokens: number }
      }
    }
  }
  responses: {
    path: {}
    query: {}
    body: {
      model: string
      input:
        | string
        | readonly {
            type?: string
            role?: 'system' | 'developer' | 'user' | 'assistant'
            content?:
              | string
              | readonly {
                  type: string
                  text?: string
                  refusal?: string
                  image_url?: string
                  detail?: 'auto' | 'low' | 'high' | 'original'
                }[]
            call_id?: string
            name?: string
            namespace?: string
            arguments?: string
            input?: string
            output?:
              | string
              | readonly {
                  type: string
                  text?: string
                  refusal?: string
                  image_url?: string
                  detail?: 'auto' | 'low' | 'high' | 'original'
                }[]
            encrypted_content?: string
          }[]
      instructions?: string
      stream?: boolean
      max_output_tokens?: number
      temperature?: number
      top_p?: number
      tools?: readonly {
        type: string
        name?: string
        description?: string
        parameters?: Record<string, unknown>
        strict?: boolean
        format?: { type: string; syntax?: string; definition?: string }
        tools?: readonly {
          type: string
          name?: string
          description?: string
          parameters?: Record<string, unknown>
          strict?: boolean
          format?: { type: string; syntax?: string; definition?: string }
        }[]
      }[]
      tool_choice?:
        | 'none'
        | 'auto'
        | 'required'
        | { type: string; name?: string; namespace?: string; mode?: string; tools?: readonly { name?: string }[] }
      parallel_tool_calls?: boolean
      text?: {
        format?:
          | { type: 'text' }
          | { type: 'json_object' }
          | {
              type: 'json_schema'
              name: string
              description?: string
              schema: Record<string, unknown>
              strict?: boolean
            }
        verbosity?: string
      }
      reasoning?: { effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'; summary?: string }
      include?: readonly string[]
      store?: boolean
      previous_response_id?: string
      conversation?: string | Record<string, unknown>
      background?: boolean
      prompt?: Record<string, unknown>
      metadata?: Record<string, string>
      truncation?: 'auto' | 'disabled'
      user?: string
      service_tier?: 'auto' | 'default' | 'flex'
      safety_identifier?: string
      prompt_cache_key?: string
    }
    answer: {
      id: string
      object: 'response'
      created_at: number
      status: 'completed' | 'incomplete' | 'failed' | 'in_progress'
      model: string
      output: readonly (
        | {
            id: string
            type: 'message'
            role: 'assistant'
            status: 'in_progress' | 'completed' | 'incomplete'
            content: readonly {
              type: 'output_text'
              text: string
              annotations: readonly Record<string, unknown>[]
              logprobs: readonly Record<string, unknown>[]
            }[]
          }
        | {
            id: string
            type: 'reasoning'
            status: 'in_progress' | 'completed' | 'incomplete'
            summary: readonly Record<string, unknown>[]
            content: readonly { type: 'reasoning_text'; text: string }[]
            encrypted_content?: string
          }
        | {
            id: string
            type: 'function_call'
            status: 'in_progress' | 'completed' | 'incomplete'
            call_id: string
            name: string
            namespace?: string
            arguments: string
          }
        | {
            id: string
            type: 'custom_tool_call'
            status: 'in_progress' | 'completed' | 'incomplete'
            call_id: string
            name: string
            namespace?: string
            input: string
          }
      )[]
      error: { code: string; message: string } | null
      incomplete_details: { reason: string } | null
      usage: {
        input_tokens: number
        input_tokens_details: { cached_tokens: number; cache_write_tokens: number }
        output_tokens: number
        output_tokens_details: { reasoning_tokens: number }
        total_tokens: number
      } | null
      background: boolean
      instructions: null
      max_output_tokens: number | null
      max_tool_calls: null
      metadata: Record<string, string>
      parallel_tool_calls: boolean
      previous_response_id: null
      reasoning: { effort: string | null; summary: null }
      service_tier: string
      store: false
      temperature: number | null
      text: { format: { type: string } }
      tool_choice: string
      tools: readonly Record<string, unknown>[]
      top_logprobs: number
      top_p: number | null
      truncation: string
    }
  }
  messages: {
    path: {}
    query: {}
    body: {
      model: string
      messages: readonly {
        role: 'user' | 'assistant' | 'system'
        content:
          | string
          | readonly {
              type: string
              text?: string
              source?: {
                type: string
                media_type?: string
                data?: string
                url?: string
                content?: string | readonly Record<string, unknown>[]
              }
              id?: string
              name?: string
              input?: Record<string, unknown>
              tool_use_id?: string
              content?:
                | string
                | readonly {
                    type: string
                    text?: string
                    source?: {
                      type: string
                      media_type?: string
                      data?: string
                      url?: string
                      content?: string | readonly Record<string, unknown>[]
                    }
                  }[]
              is_error?: boolean
              thinking?: string
              signature?: string
            }[]
      }[]
      system?:
        | string
        | readonly {
            type: string
            text?: string
            source?: {
              type: string
              media_type?: string
              data?: string
              url?: string
              content?: string | readonly Record<string, unknown>[]
            }
            id?: string
            name?: string
            input?: Record<string, unknown>
            tool_use_id?: string
            content?:
              | string
              | readonly {
                  type: string
                  text?: string
                  source?: {
                    type: string
                    media_type?: string
                    data?: string
                    url?: string
                    content?: string | readonly Record<string, unknown>[]
                  }
                }[]
            is_error?: boolean
            thinking?: string
            signature?: string
          }[]
      tools?: readonly {
        type?: string
        name: string
        description?: string
        input_schema?: Record<string, unknown>
        strict?: boolean
      }[]
      tool_choice?: { type: 'auto' | 'any' | 'tool' | 'none'; name?: string; disable_parallel_tool_use?: boolean }
      thinking?: { type: string; display?: string }
      output_config?: {
        effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
        format?: { type: 'json_schema'; schema: Record<string, unknown> }
      }
      output_format?: { type: 'json_schema'; schema: Record<string, unknown> }
      max_tokens: number
      stream?: boolean
      temperature?: number
      top_p?: number
      top_k?: number
      stop_sequences?: readonly string[]
      metadata?: { user_id?: string }
      service_tier?: 'auto' | 'standard_only'
    }
    answer: {
      id: string
      type: 'message'
      role: 'assistant'
      model: string
      content: readonly (
        | { type: 'text'; text: string }
        | { type: 'thinking'; thinking: string; signature: string }
        | { type: 'tool_use'; id: string; name: string; input: Record<string, unknown> }
      )[]
      stop_reason: 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' | 'refusal'
      stop_sequence: string | null
      stop_details: null
      usage: {
        input_tokens: number
        cache_creation_input_tokens: number
        cache_read_input_tokens: number
        output_tokens: number
        output_tokens_details: { thinking_tokens: number }
        service_tier: 'standard' | 'batch'
      }
    }
  }
  completions: {
    path: {}
    query: {}
    body: {
      model: string
      prompt: string | readonly string[]
      max_tokens?: number
      suffix?: string
      echo?: boolean
      best_of?: number
      logprobs?: number
      stream?: boolean
      stream_options?: { include_usage?: boolean }
      temperature?: number
      top_p?: number
      frequency_penalty?: number
      presence_penalty?: number
      seed?: number
      n?: number
      stop?: string | readonly string[]
      logit_bias?: Record<string, number>
      top_k?: number
      min_p?: number
      repetition_penalty?: number
      user?: string
      service_tier?: 'auto' | 'default' | 'flex'
    }
    answer: {
      id: string
      object: 'text_completion'
      created: number
      model: string
      choices: readonly {
        index: number
        text: string
        logprobs: Record<string, unknown> | null
        finish_reason: 'stop' | 'length' | 'content_filter'
      }[]
      usage: {
        prompt_tokens: number
        completion_tokens: number
        total_tokens: number
        prompt_tokens_details: { cached_tokens: number }
        completion_tokens_details: { reasoning_tokens: number }
      }
    }
  }
  embeddings: {
    path: {}
    query: {}
    body: {
      model: string
      input: string | readonly string[] | readonly number[] | readonly (readonly number[])[]
      encoding_format?: 'float' | 'base64'
      dimensions?: number
      user?: string
      service_tier?: 'auto' | 'default' | 'flex'
    }
    answer: {
      object: 'list'
      data: readonly { object: 'embedding'; index: number; embedding: readonly number[] | string }[]
      model: string
      usage: { prompt_tokens: number; total_tokens: number }
    }
  }
  rerank: {
    path: {}
    query: {}
    body: {
      model: string
      query: string
      documents: readonly (string | { text: string })[]
      top_n?: number
      return_documents?: boolean
      max_tokens_per_doc?: number
      service_tier?: 'auto' | 'default' | 'flex'
    }
    answer: {
      id: string
      model: string
      results: readonly { index: number; relevance_score: number; document?: { text: string } }[]
      meta: { api_version: { version: string }; billed_units: { search_units: number } }
      usage: { prompt_tokens: number; total_tokens: number }
    }
  }
  reranking: {
    path: {}
    query: {}
    body: {
      model: string
      query: { text: string }
      passages: readonly { text: string }[]
      truncate?: 'NONE' | 'END'
      top_n?: number
      service_tier?: 'auto' | 'default' | 'flex'
    }
    answer: {
      rankings: readonly { index: number; logit: number }[]
      usage: { prompt_tokens: number; total_tokens: number }
    }
  }
  imagesGenerations: {
    path: {}
    query: {}
    body: {
      model: string
      prompt: string
      n?: number
      size?: string
      response_format?: 'b64_json' | 'url'
      quality?: 'auto' | 'standard' | 'hd' | 'low' | 'medium' | 'high'
      style?: 'vivid' | 'natural'
      background?: 'auto' | 'transparent' | 'opaque'
      output_format?: 'png' | 'jpeg' | 'webp'
      seed?: number
      negative_prompt?: string
      steps?: number
      stream?: boolean
      user?: string
    }
    answer: { created: number; data: readonly { b64_json?: string; url?: string; revised_prompt?: string }[] }
  }
  audioTranscriptions: {
    path: {}
    query: {}
    body: {
      file: string
      model: string
      language?: string
      prompt?: string
      response_format?: 'json' | 'text' | 'srt' | 'verbose_json' | 'vtt'
      temperature?: number
      stream?: boolean
      'timestamp_granularities[]'?: readonly ('word' | 'segment')[]
    }
    answer: {
      text: string
      usage?: { type: 'duration'; seconds: number }
      task?: 'transcribe' | 'translate'
      language?: string
      duration?: number
      segments?: readonly {
        id: number
        seek: number
        start: number
        end: number
        text: string
        tokens: readonly number[]
        temperature: number
        avg_logprob: number
        compression_ratio: number
        no_speech_prob: number
      }[]
      words?: readonly { word: string; start: number; end: number }[]
    }
  }
  audioTranslations: {
    path: {}
    query: {}
    body: {
      file: string
      model: string
      language?: string
      prompt?: string
      response_format?: 'json' | 'text' | 'srt' | 'verbose_json' | 'vtt'
      temperature?: number
      stream?: boolean
      'timestamp_granularities[]'?: readonly ('word' | 'segment')[]
    }
    answer: {
      text: string
      usage?: { type: 'duration'; seconds: number }
      task?: 'transcribe' | 'translate'
      language?: string
      duration?: number
      segments?: readonly {
        id: number
        seek: number
        start: number
        end: number
        text: string
        tokens: readonly number[]
        temperature: number
        avg_logprob: number
        compression_ratio: number
        no_speech_prob: number
      }[]
      words?: readonly { word: string; start: number; end: number }[]
    }
  }
  countTokens: {
    path: {}
    query: {}
    body: {
      model: string
      messages: readonly {
        role: 'user' | 'assistant' | 'system'
        content:
          | string
          | readonly {
              type: string
              text?: string
              source?: {
                type: string
                media_type?: string
                data?: string
                url?: string
                content?: string | readonly Record<string, unknown>[]
              }
              id?: string
              name?: string
              input?: Record<string, unknown>
              tool_use_id?: string
              content?:
                | string
                | readonly {
                    type: string
                    text?: string
                    source?: {
                      type: string
                      media_type?: string
                      data?: string
                      url?: string
                      content?: string | readonly Record<string, unknown>[]
                    }
                  }[]
              is_error?: boolean
              thinking?: string
              signature?: string
            }[]
      }[]
      system?:
        | string
        | readonly {
            type: string
            text?: string
            source?: {
              type: string
              media_type?: string
              data?: string
              url?: string
              content?: string | readonly Record<string, unknown>[]
            }
            id?: string
            name?: string
            input?: Record<string, unknown>
            tool_use_id?: string
            content?:
              | string
              | readonly {
                  type: string
                  text?: string
                  source?: {
                    type: string
                    media_type?: string
                    data?: string
                    url?: string
                    content?: string | readonly Record<string, unknown>[]
                  }
                }[]
            is_error?: boolean
            thinking?: string
            signature?: string
          }[]
      tools?: readonly {
        type?: string
        name: string
        description?: string
        input_schema?: Record<string, unknown>
        strict?: boolean
      }[]
      tool_choice?: { type: 'auto' | 'any' | 'tool' | 'none'; name?: string; disable_parallel_tool_use?: boolean }
      thinking?: { type: string; display?: string }
      output_config?: {
        effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
        format?: { type: 'json_schema'; schema: Record<string, unknown> }
      }
      output_format?: { type: 'json_schema'; schema: Record<string, unknown> }
    }
    answer: { input_tokens: number }
  }
  models: {
    path: {}
    query: {
      scope?: 'callable' | 'catalog'
      category?: 'llm' | 'vision' | 'embedding' | 'reranker' | 'image' | 'audio'
      mode?: 'serverless' | 'dedicated'
      supported_parameters?: string
    }
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
  modelsDetail: {
    path: {}
    query: { slug: string }
    body: undefined
    answer: {
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
      description: string
      aliases: readonly string[]
      queue_limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      } | null
    }
  }
  modelsSlug: {
    path: { slug: string }
    query: {}
    body: undefined
    answer: {
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
      description: string
      aliases: readonly string[]
      queue_limits: {
        token_budget: number
        max_concurrent_requests: number
        max_queue_depth: number
        max_wait_ms: number
        max_requests_per_workspace?: number
      } | null
    }
  }
  queueStatus: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        object: 'queue.status'
        model: string
        in_flight_requests: number
        committed_tokens: number
        available_budget: number
        queue_depth: number
        batch?: { in_flight_requests: number; committed_tokens: number; queue_depth: number }
        engine?: {
          state: 'stopped' | 'starting' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'stopping' | 'failed'
          ready_in_ms: number | null
        }
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
  ownKey: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'key'
      id: string
      redacted: string
      name: string | null
      workspace: string
      created: string
      expires_at: string | null
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
      requests_per_minute: { limit: number; used: number; remaining: number; resets_at: string } | null
      tokens_per_minute: { limit: number; used: number; remaining: number; resets_at: string } | null
      spend_per_day: { limit: string; spent: string; remaining: string; resets_at: string } | null
      spend_per_month: { limit: string; spent: string; remaining: string; resets_at: string } | null
      workspace_limits: {
        requests_per_minute: { limit: number; used: number; remaining: number; resets_at: string }
        tokens_per_minute: { limit: number; used: number; remaining: number; resets_at: string } | null
        spend_per_month: {
          limit: string
          spent: string
          remaining: string
          resets_at: string
          kind: 'soft' | 'hard'
        } | null
      }
    }
  }
  listKeys: {
    path: {}
    query: { state?: 'valid'; before?: string; limit?: number }
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
    }
  }
  usage: {
    path: {}
    query: {
      from?: string
      to?: string
      group_by?: 'model' | 'key' | 'day' | 'service_tier'
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
  usageCache: {
    path: {}
    query: {}
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
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
  usageRefused: {
    path: {}
    query: {
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
      groups: readonly { key_id: string | null; http_status: number | null; error_code: string; requests: number }[]
      newest: readonly {
        request_id: string
        at: string
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
  usageRequestId: {
    path: { request_id: string }
    query: {}
    body: undefined
    answer: {
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
  uploadFile: {
    path: {}
    query: {}
    body: { file: string; purpose: 'batch'; expires_after?: { anchor: 'created_at'; seconds: number } }
    answer: {
      id: string
      object: 'file'
      bytes: number
      created_at: number
      expires_at: number
      filename: string
      purpose: 'batch' | 'batch_output'
      status: 'processed'
    }
  }
  listFiles: {
    path: {}
    query: { purpose?: 'batch' | 'batch_output'; order?: 'asc' | 'desc'; after?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        object: 'file'
        bytes: number
        created_at: number
        expires_at: number
        filename: string
        purpose: 'batch' | 'batch_output'
        status: 'processed'
      }[]
      first_id: string | null
      last_id: string | null
      has_more: boolean
    }
  }
  getFile: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      object: 'file'
      bytes: number
      created_at: number
      expires_at: number
      filename: string
      purpose: 'batch' | 'batch_output'
      status: 'processed'
    }
  }
  deleteFile: {
    path: { id: string }
    query: {}
    body: undefined
    answer: { id: string; object: 'file'; deleted: true }
  }
  getFileContent: {
    path: { id: string }
    query: {}
    body: undefined
    answer: unknown
  }
  createBatch: {
    path: {}
    query: {}
    body: {
      input_file_id: string
      endpoint: string
      completion_window: '24h'
      metadata?: Record<string, string> | null
    }
    answer: {
      id: string
      object: 'batch'
      endpoint: string
      errors: {
        object: 'list'
        count: number
        data: readonly { code: string; message: string; param: string | null; line: number | null }[]
      } | null
      input_file_id: string
      completion_window: '24h'
      status:
        | 'validating'
        | 'failed'
        | 'in_progress'
        | 'finalizing'
        | 'completed'
        | 'expired'
        | 'cancelling'
        | 'cancelled'
      paused: { code: string; message: string; since: number } | null
      output_file_id: string | null
      error_file_id: string | null
      created_at: number
      in_progress_at: number | null
      expires_at: number
      finalizing_at: number | null
      completed_at: number | null
      failed_at: number | null
      expired_at: number | null
      cancelling_at: number | null
      cancelled_at: number | null
      request_counts: { total: number; completed: number; failed: number }
      metadata: Record<string, string> | null
    }
  }
  listBatches: {
    path: {}
    query: { after?: string; limit?: number }
    body: undefined
    answer: {
      object: 'list'
      data: readonly {
        id: string
        object: 'batch'
        endpoint: string
        errors: {
          object: 'list'
          count: number
          data: readonly { code: string; message: string; param: string | null; line: number | null }[]
        } | null
        input_file_id: string
        completion_window: '24h'
        status:
          | 'validating'
          | 'failed'
          | 'in_progress'
          | 'finalizing'
          | 'completed'
          | 'expired'
          | 'cancelling'
          | 'cancelled'
        paused: { code: string; message: string; since: number } | null
        output_file_id: string | null
        error_file_id: string | null
        created_at: number
        in_progress_at: number | null
        expires_at: number
        finalizing_at: number | null
        completed_at: number | null
        failed_at: number | null
        expired_at: number | null
        cancelling_at: number | null
        cancelled_at: number | null
        request_counts: { total: number; completed: number; failed: number }
        metadata: Record<string, string> | null
      }[]
      first_id: string | null
      last_id: string | null
      has_more: boolean
    }
  }
  getBatch: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      object: 'batch'
      endpoint: string
      errors: {
        object: 'list'
        count: number
        data: readonly { code: string; message: string; param: string | null; line: number | null }[]
      } | null
      input_file_id: string
      completion_window: '24h'
      status:
        | 'validating'
        | 'failed'
        | 'in_progress'
        | 'finalizing'
        | 'completed'
        | 'expired'
        | 'cancelling'
        | 'cancelled'
      paused: { code: string; message: string; since: number } | null
      output_file_id: string | null
      error_file_id: string | null
      created_at: number
      in_progress_at: number | null
      expires_at: number
      finalizing_at: number | null
      completed_at: number | null
      failed_at: number | null
      expired_at: number | null
      cancelling_at: number | null
      cancelled_at: number | null
      request_counts: { total: number; completed: number; failed: number }
      metadata: Record<string, string> | null
    }
  }
  cancelBatch: {
    path: { id: string }
    query: {}
    body: undefined
    answer: {
      id: string
      object: 'batch'
      endpoint: string
      errors: {
        object: 'list'
        count: number
        data: readonly { code: string; message: string; param: string | null; line: number | null }[]
      } | null
      input_file_id: string
      completion_window: '24h'
      status:
        | 'validating'
        | 'failed'
        | 'in_progress'
        | 'finalizing'
        | 'completed'
        | 'expired'
        | 'cancelling'
        | 'cancelled'
      paused: { code: string; message: string; since: number } | null
      output_file_id: string | null
      error_file_id: string | null
      created_at: number
      in_progress_at: number | null
      expires_at: number
      finalizing_at: number | null
      completed_at: number | null
      failed_at: number | null
      expired_at: number | null
      cancelling_at: number | null
      cancelled_at: number | null
      request_counts: { total: number; completed: number; failed: number }
      metadata: Record<string, string> | null
    }
  }
  invoiceLine: {
    path: { number: string; line: string }
    query: { format?: 'json' | 'csv'; limit?: number; after?: string }
    body: undefined
    answer: {
      object: 'list'
      description: string
      unit:
        | 'input_tokens'
        | 'cached_input_tokens'
        | 'output_tokens'
        | 'images'
        | 'audio_minutes'
        | 'capacity_hours'
        | 'rounding'
        | 'credit'
      data: readonly {
        request_id: string
        started: string
        settled: string
        quantity: string
        amount: string
        estimated: boolean
        outcome: string
        corrects: string | null
        reason: string | null
      }[]
      next: string | null
    }
  }
  invoiceRows: {
    path: { number: string; line: string }
    query: { until: string; signature: string; after?: string; format?: 'html' | 'csv' }
    body: undefined
    answer: unknown
  }
}

export const operations = {
  chatCompletions: ['POST', '/api/v1/chat/completions'],
  responses: ['POST', '/api/v1/responses'],
  messages: ['POST', '/api/v1/messages'],
  completions: ['POST', '/api/v1/completions'],
  embeddings: ['POST', '/api/v1/embeddings'],
  rerank: ['POST', '/api/v1/rerank'],
  reranking: ['POST', '/api/v1/reranking'],
  imagesGenerations: ['POST', '/api/v1/images/generations'],
  audioTranscriptions: ['POST', '/api/v1/audio/transcriptions'],
  audioTranslations: ['POST', '/api/v1/audio/translations'],
  countTokens: ['POST', '/api/v1/messages/count_tokens'],
  models: ['GET', '/api/v1/models'],
  modelsDetail: ['GET', '/api/v1/models/detail'],
  modelsSlug: ['GET', '/api/v1/models/{slug}'],
  queueStatus: ['GET', '/api/v1/queue/status'],
  ownKey: ['GET', '/api/v1/key'],
  listKeys: ['GET', '/api/v1/keys'],
  createKey: ['POST', '/api/v1/keys'],
  changeKey: ['PATCH', '/api/v1/keys/{id}'],
  revokeKey: ['DELETE', '/api/v1/keys/{id}'],
  usage: ['GET', '/api/v1/usage'],
  usageCache: ['GET', '/api/v1/usage/cache'],
  usageRefused: ['GET', '/api/v1/usage/refused'],
  usageRequestId: ['GET', '/api/v1/usage/{request_id}'],
  uploadFile: ['POST', '/api/v1/files'],
  listFiles: ['GET', '/api/v1/files'],
  getFile: ['GET', '/api/v1/files/{id}'],
  deleteFile: ['DELETE', '/api/v1/files/{id}'],
  getFileContent: ['GET', '/api/v1/files/{id}/content'],
  createBatch: ['POST', '/api/v1/batches'],
  listBatches: ['GET', '/api/v1/batches'],
  getBatch: ['GET', '/api/v1/batches/{id}'],
  cancelBatch: ['POST', '/api/v1/batches/{id}/cancel'],
  invoiceLine: ['GET', '/api/v1/invoices/{number}/lines/{line}'],
  invoiceRows: ['GET', '/api/v1/invoices/{number}/rows/{line}'],
} as const satisfies Record<keyof Operations, readonly [method: string, path: string, roles?: readonly string[]]>
