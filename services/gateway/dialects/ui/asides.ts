import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { UiChunk } from './chunks.ts'

type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
type Aside = Of<'subagent_start' | 'subagent_end' | 'warning' | 'plan_queued' | 'done' | 'error'>

/** The chunks for events other than text and calls, and for the end of a run. */
export function aside(event: Aside): UiChunk[] {
  switch (event.type) {
    case 'subagent_start': {
      const { subagent_id: id, parent_subagent_id: parentId, description, model } = event
      return [{ type: 'data-subagent', id, data: given({ status: 'running', description, model, parentId }) }]
    }
    case 'subagent_end': {
      const { subagent_id: id, parent_subagent_id: parentId, status, result, error } = event
      return [{ type: 'data-subagent', id, data: given({ status, result, error, parentId }) }]
    }
    case 'warning': {
      const { code, message } = event
      return [{ type: 'data-warning', data: { code, message }, transient: true }]
    }
    case 'plan_queued': {
      const data = 'plan_id' in event ? { planId: event.plan_id } : { note: event.note }
      return [
        { type: 'data-plan', data },
        { type: 'finish', finishReason: 'stop' },
      ]
    }
    case 'done': {
      const { type: _, stop_reason: stopReason, output: _output, ...usage } = event
      return [{ type: 'finish', finishReason: 'stop', messageMetadata: { usage, stopReason } }]
    }
    case 'error':
      return failed(event)
  }
}

/** A chunk `file` has no field for a name, so a data part of our own carries the other fields. */
export function artifactChunks(
  { file_id: fileId, name, media_type: mediaType, bytes, title, tool_use_id: toolCallId }: Omit<Of<'artifact'>, 'type'>,
  basePath: string,
): UiChunk[] {
  const data = given({ fileId, name, mediaType, bytes, title, toolCallId })
  return [
    { type: 'file', url: `${basePath}/files/${fileId}/content`, mediaType },
    { type: 'data-artifact', id: fileId, data },
  ]
}

const CANCELLED: ReadonlySet<string> = new Set(['cancelled', 'session_deleted'])

type Failure = Pick<ErrorEvent, 'code' | 'error' | 'suggestion' | 'session_kept'>

/** A chunk `error` has only a text, so the fields for programs are in the message's metadata. */
export function failed({ code, error, suggestion, session_kept: sessionKept }: Failure): UiChunk[] {
  if (CANCELLED.has(code)) return [{ type: 'abort', reason: error }]
  return [
    { type: 'message-metadata', messageMetadata: given({ errorCode: code, sessionKept }) },
    { type: 'error', errorText: `${error} (${code}). ${suggestion}` },
  ]
}

/** Removes the fields that are not set. */
export const given = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
