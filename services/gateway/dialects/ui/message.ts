import type { ReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { OpenCalls } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import type { UiChunk } from './chunks.ts'
import { UiProjection } from './projection.ts'

/** A message of a page (`UIMessage` of the package `ai`). */
export type UiMessage = { id: string; role: 'user' | 'assistant'; metadata?: JsonObject; parts: JsonObject[] }

/** Puts the message of a run together from its chunks, as a page does that reads the stream. */
export class UiMessageProjection implements Projection<UiChunk> {
  readonly message: UiMessage & { metadata: JsonObject }
  readonly #stream: UiProjection
  /** The blocks of text that are open, by the ids of their chunks. */
  readonly #blocks = new Map<string, JsonObject>()

  constructor(runId: string, sessionId: string) {
    this.#stream = new UiProjection(runId, sessionId)
    this.message = { id: runId, role: 'assistant', metadata: { runId, sessionId }, parts: [] }
  }

  begin(): UiChunk[] {
    return []
  }

  take(numbered: Numbered<AgentEvent>, calls: OpenCalls): UiChunk[] {
    return this.#add(this.#stream.take(numbered, calls))
  }

  pause(calls: OpenCalls): UiChunk[] {
    return this.#add(this.#stream.pause(calls))
  }

  cut(code: ReaderFailure): UiChunk[] {
    return this.#add(this.#stream.cut(code))
  }

  #add(chunks: UiChunk[]): UiChunk[] {
    for (const chunk of chunks) this.#addOne(chunk)
    return chunks
  }

  #addOne(chunk: UiChunk): void {
    const { parts, metadata } = this.message
    switch (chunk.type) {
      case 'start-step':
        parts.push({ type: 'step-start' })
        return
      case 'text-start':
      case 'reasoning-start':
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end':
        return this.#addText(chunk)
      case 'message-metadata':
      case 'finish':
        Object.assign(metadata, chunk.messageMetadata)
        return
      case 'error':
        metadata['error'] = chunk.errorText
        return
      case 'abort':
        metadata['error'] = chunk.reason
        return
      default:
        if ('toolCallId' in chunk) this.#addToCall(chunk)
        else if ('data' in chunk) this.#addData(chunk)
    }
  }

  #addText(chunk: Extract<UiChunk, { type: `${'text' | 'reasoning'}-${string}` }>): void {
    const block = this.#blocks.get(chunk.id)
    if ('delta' in chunk) {
      if (block) block['text'] = `${String(block['text'])}${chunk.delta}`
      return
    }
    if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') {
      if (block) block['state'] = 'done'
      return
    }
    const begun = { type: chunk.type === 'text-start' ? 'text' : 'reasoning', text: '', state: 'streaming' }
    this.#blocks.set(chunk.id, begun)
    this.message.parts.push(begun)
  }

  #addToCall(chunk: Extract<UiChunk, { toolCallId: string }>): void {
    const { toolCallId } = chunk
    const known = this.#callOf(toolCallId)
    if (chunk.type === 'tool-input-available') {
      const { type: _, ...input } = chunk
      const call = { type: 'dynamic-tool', ...given(input), state: 'input-available' }
      if (known && !ENDED.has(String(known['state']))) Object.assign(known, call)
      else this.message.parts.push(call)
      return
    }
    if (!known) return
    if (chunk.type === 'tool-approval-request') {
      const { approvalId: id, reason, approvalDescriptor: descriptor } = chunk
      Object.assign(known, { state: 'approval-requested', approval: { id, reason, descriptor } })
    }
    if (chunk.type === 'tool-output-available')
      Object.assign(known, { state: 'output-available', output: chunk.output })
    if (chunk.type === 'tool-output-error') Object.assign(known, { state: 'output-error', errorText: chunk.errorText })
    if (chunk.type === 'tool-output-denied') known['state'] = 'output-denied'
  }

  #addData(chunk: Extract<UiChunk, { type: `data-${string}` }>): void {
    if (chunk.transient) return
    const { type, id, data } = chunk
    const known = id === undefined ? undefined : this.message.parts.find((part) => part['type'] === type && part['id'] === id)
    if (known) known['data'] = data
    else this.message.parts.push(given({ type, id, data }))
    const call = type === 'data-approval' ? this.#callOf(String(data['toolCallId'])) : undefined
    const { approved, reason } = data
    if (call) call['approval'] = given({ ...(call['approval'] as JsonObject | undefined), id, approved, reason })
  }

  #callOf(toolCallId: string): JsonObject | undefined {
    return this.message.parts.findLast((part) => part['toolCallId'] === toolCallId)
  }
}

const ENDED: ReadonlySet<string> = new Set(['output-available', 'output-error', 'output-denied'])

/** Without the fields that are not set. */
const given = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
