import { setTimeout as sleep } from 'node:timers/promises'
import type { ModelPart, ModelProvider, ModelRequest } from '../../shared/agent/providers/port.ts'

/** The model's part in a run: it speaks, then it calls tools, and when it has their results it speaks again. */
export type Script = { key: string; words: number; everyMs: number; tools: readonly ('Effect' | 'Ask')[] }

export const promptOf = (script: Script): string => JSON.stringify(script)

/** A model that does what its prompts say. */
export const scriptedModel: ModelProvider = {
  type: 'scripted',
  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart> {
    const script = scriptOf(request)
    const hasResults = request.messages.at(-1)?.role === 'tool'
    const calls = hasResults ? [] : script.tools
    for (let word = 1; word <= script.words; word++) {
      await sleep(script.everyMs)
      if (signal.aborted) return
      yield { type: 'text_delta', text: `${script.key}:${word} ` }
    }
    yield { type: 'text_end' }
    for (const [i, toolName] of calls.entries()) {
      const id = `${script.key}-${i + 1}`
      yield { type: 'tool_call', id, toolName, input: JSON.stringify({ key: id }) }
    }
    const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: script.words }
    yield { type: 'finish', reason: calls.length > 0 ? 'tool_use' : 'end_turn', usage }
  },
}

export function scriptOf({ messages }: ModelRequest): Script {
  const last = messages.findLast((message) => message.role === 'user')
  return JSON.parse(last?.text ?? '') as Script
}
