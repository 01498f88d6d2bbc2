import { registerHooks } from 'node:module'
import * as cohere from '@langchain/cohere'
import * as documents from '@langchain/core/documents'
import * as messages from '@langchain/core/messages'
import * as tools from '@langchain/core/tools'
import * as openai from '@langchain/openai'

/** The LangChain packages of one major. */
export interface LangChain {
  /** The end of the client's name in suite titles. */
  readonly suffix: '' | ' 0'
  readonly openai: typeof openai
  readonly cohere: typeof cohere
  readonly messages: typeof messages
  readonly tools: typeof tools
  readonly documents: typeof documents
}

/**
 * The older packages are installed under aliases, but import `@langchain/core` by its real name. This redirects them to
 * the core of their own major; nothing else about them is changed.
 */
registerHooks({
  resolve(specifier, context, next) {
    const isOlder = /\/node_modules\/langchain-(openai|cohere)-0\//.test(context.parentURL ?? '')
    return next(isOlder ? specifier.replace(/^@langchain\/core(?=\/|$)/, 'langchain-core-0') : specifier, context)
  },
})

async function olderMajor(): Promise<LangChain> {
  return {
    suffix: ' 0',
    openai: await import('langchain-openai-0'),
    cohere: await import('langchain-cohere-0'),
    messages: await import('langchain-core-0/messages'),
    tools: await import('langchain-core-0/tools'),
    documents: await import('langchain-core-0/documents'),
  } as unknown as LangChain
}

export const langChains: readonly LangChain[] = [
  { suffix: '', openai, cohere, messages, tools, documents },
  await olderMajor(),
]
