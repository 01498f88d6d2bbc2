import { Template } from '@huggingface/jinja'
import type { LlamaModel } from 'node-llama-cpp'
import { invalidValue } from '../runtime/engine-model.ts'
import type { ChatMessage, ChatRequest, Json, ToolDefinition } from '../runtime/engine-model.ts'

export interface ChatTemplate {
  /** Whether the template itself tells the model about tools, in the `<tool_call>` manner we can read back. */
  knowsTools: boolean
  /** Whether the model thinks aloud between `<think>` marks. */
  thinks: boolean
  render(request: ChatRequest): string
}

/** Used for models without a template of their own; most small models understand it. */
const chatMl =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

/** The chat template that came with the weights. */
export function chatTemplate(model: LlamaModel): ChatTemplate {
  const source = model.fileInfo.metadata.tokenizer?.chat_template ?? chatMl
  const template = new Template(source)
  const knowsTools = source.includes('tools') && source.includes('<tool_call>')
  return {
    knowsTools,
    thinks: source.includes('</think>'),
    render(request) {
      const { toolChoice, templateVariables } = request
      const tools = toolChoice === 'none' ? [] : request.tools
      const messages =
        knowsTools || tools.length === 0 ? request.messages : withToolInstructions(request.messages, tools)
      try {
        return template.render({
          ...templateVariables,
          messages: messages.map((message) => templateMessage(message, knowsTools)),
          ...(knowsTools && tools.length > 0 ? { tools: tools.map(toolDeclaration) } : {}),
          add_generation_prompt: true,
          bos_token: model.tokens.bosString ?? '',
          eos_token: model.tokens.eosString ?? '',
        })
      } catch (error) {
        // Templates refuse what the model was not trained for: roles out of turn, a system message …
        throw invalidValue('messages', `The model's chat template refused the messages: ${(error as Error).message}`)
      }
    },
  }
}

function toolDeclaration({ name, description = '', parameters = {} }: ToolDefinition): Json {
  return { type: 'function', function: { name, description, parameters } }
}

function templateMessage(message: ChatMessage, knowsTools: boolean): Record<string, Json> {
  const { role, text, toolCalls = [] } = message
  if (knowsTools) {
    const calls = toolCalls.map((call) => ({
      type: 'function',
      function: { name: call.name, arguments: parsedArguments(call.arguments) },
    }))
    return { role, content: text, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
  }
  // Templates without tools know neither the role nor the field: both become plain text.
  const calls = toolCalls.map(
    (call) => `<tool_call>\n{"name": "${call.name}", "arguments": ${call.arguments}}\n</tool_call>`,
  )
  if (role === 'tool') return { role: 'user', content: `<tool_response>\n${text}\n</tool_response>` }
  return { role, content: [text, ...calls].filter((part) => part !== '').join('\n') }
}

function parsedArguments(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

function withToolInstructions(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]): ChatMessage[] {
  const instructions = [
    'You may call one or more functions to help the user. The functions:',
    '<tools>',
    ...tools.map((tool) => JSON.stringify(toolDeclaration(tool))),
    '</tools>',
    'To call one, write a JSON object with its name and arguments between tags:',
    '<tool_call>\n{"name": <function name>, "arguments": <arguments object>}\n</tool_call>',
  ].join('\n')
  const [first, ...rest] = messages
  if (first?.role === 'system') return [{ ...first, text: `${first.text}\n\n${instructions}` }, ...rest]
  return [{ role: 'system', text: instructions, images: [] }, ...messages]
}
