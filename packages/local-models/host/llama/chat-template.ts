import { Template } from '@huggingface/jinja'
import type { LlamaModel } from 'node-llama-cpp'
import { HostError } from '../runtime/host-error.ts'
import type { EngineChatMessage, EngineChatRequest, ToolDefinition } from '../runtime/engine-model.ts'
import type { JsonObject, JsonValue } from '../runtime/json-value.ts'

export interface ChatTemplate {
  /** Whether the model writes its reasoning between `<think>` tags. */
  readonly thinks: boolean
  render(request: EngineChatRequest): string
}

/** ChatML, for models without a template of their own. Most small models understand it. */
const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

/** The chat template that came with the weights. */
export function chatTemplate(model: LlamaModel): ChatTemplate {
  const source = model.fileInfo.metadata.tokenizer?.chat_template ?? CHATML
  const template = new Template(source)
  // Whether the template tells the model about tools itself, with the `<tool_call>` tags that we read back.
  const knowsTools = source.includes('tools') && source.includes('<tool_call>')
  return {
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
        // Templates refuse what the model was not trained for, such as roles out of turn or a system message.
        throw new HostError(
          'invalid_value',
          `The model's chat template refused the messages: ${(error as Error).message}`,
          { param: 'messages' },
        )
      }
    },
  }
}

function toolDeclaration({ name, description = '', parameters = {} }: ToolDefinition): JsonObject {
  return { type: 'function', function: { name, description, parameters } }
}

function templateMessage({ role, text, toolCalls }: EngineChatMessage, knowsTools: boolean): JsonObject {
  if (knowsTools) {
    const calls = toolCalls.map((call) => ({
      type: 'function',
      function: { name: call.name, arguments: parsedArguments(call.arguments) },
    }))
    return { role, content: text, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
  }
  // A template without tools knows neither the role nor the field, so both become plain text.
  if (role === 'tool') return { role: 'user', content: `<tool_response>\n${text}\n</tool_response>` }
  const calls = toolCalls.map(
    (call) => `<tool_call>\n{"name": "${call.name}", "arguments": ${call.arguments}}\n</tool_call>`,
  )
  return { role, content: [text, ...calls].filter((part) => part !== '').join('\n') }
}

function parsedArguments(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return text
  }
}

function withToolInstructions(
  messages: readonly EngineChatMessage[],
  tools: readonly ToolDefinition[],
): EngineChatMessage[] {
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
  return [{ role: 'system', text: instructions, images: [], toolCalls: [] }, ...messages]
}
