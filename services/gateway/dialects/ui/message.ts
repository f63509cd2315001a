import type { ReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { OpenCalls } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { given } from './asides.ts'
import type { UiChunk } from './chunks.ts'
import { UiProjection } from './ui-projection.ts'

/** A message of a page (`UIMessage` of the package `ai`). */
export type UiMessage = { id: string; role: 'user' | 'assistant'; metadata?: JsonObject; parts: JsonObject[] }

/** Builds the message of a run from its chunks, as a page that reads the stream does. */
export class UiMessageProjection implements Projection<UiChunk> {
  readonly message: UiMessage & { metadata: JsonObject }
  readonly #stream: UiProjection
  /** The open blocks of text, by the ids of their chunks. */
  readonly #blocks = new Map<string, JsonObject>()
  /** The answers to approvals, by their calls. */
  readonly #answers = new Map<string, JsonObject>()

  constructor(runId: string, sessionId: string, basePath?: string) {
    this.#stream = new UiProjection(runId, sessionId, basePath)
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
    if ('toolCallId' in chunk) return this.#addToCall(chunk)
    if ('data' in chunk) return this.#addData(chunk)
    switch (chunk.type) {
      case 'start':
      case 'finish-step':
        return
      case 'start-step':
        parts.push({ type: 'step-start' })
        return
      case 'file':
        parts.push({ ...chunk })
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
      const { type: _type, dynamic, toolName, ...input } = chunk
      const name = dynamic ? { type: 'dynamic-tool', toolName } : { type: `tool-${toolName}` }
      const call = { ...name, ...given(input), state: 'input-available', approval: undefined }
      if (known && !ENDED.has(String(known['state']))) Object.assign(known, call)
      else this.message.parts.push(call)
      return
    }
    if (known) Object.assign(known, this.#changeOf(chunk))
  }

  /** The fields of a call that a chunk changes, as the package's own schema of messages has them. */
  #changeOf(chunk: Exclude<Extract<UiChunk, { toolCallId: string }>, { type: 'tool-input-available' }>): JsonObject {
    const answered = this.#answers.get(chunk.toolCallId)
    const granted = answered?.['approved'] === true ? answered : undefined
    switch (chunk.type) {
      case 'tool-approval-request': {
        const { approvalId: id, reason: requestReason, approvalDescriptor: descriptor } = chunk
        this.#answers.delete(chunk.toolCallId)
        return { state: 'approval-requested', approval: { id, requestReason, descriptor } }
      }
      case 'tool-output-available':
        return { state: 'output-available', output: chunk.output, approval: granted }
      case 'tool-output-error':
        return { state: 'output-error', errorText: chunk.errorText, approval: granted }
      case 'tool-output-denied':
        return { state: 'output-denied' }
    }
  }

  #addData(chunk: Extract<UiChunk, { type: `data-${string}` }>): void {
    if (chunk.transient) return
    const { type, id, data } = chunk
    const known =
      id === undefined ? undefined : this.message.parts.find((part) => part['type'] === type && part['id'] === id)
    if (known) known['data'] = data
    else this.message.parts.push(given({ type, id, data }))
    if (type === 'data-approval') this.#answer(id, data)
  }

  #answer(id: string | undefined, { toolCallId, approved, reason }: JsonObject): void {
    const answer = given({ id, approved, reason })
    this.#answers.set(String(toolCallId), answer)
    const call = this.#callOf(String(toolCallId))
    if (call?.['state'] === 'approval-requested') Object.assign(call, { state: 'approval-responded', approval: answer })
  }

  #callOf(toolCallId: string): JsonObject | undefined {
    return this.message.parts.findLast((part) => part['toolCallId'] === toolCallId)
  }
}

const ENDED: ReadonlySet<string> = new Set(['output-available', 'output-error', 'output-denied'])
