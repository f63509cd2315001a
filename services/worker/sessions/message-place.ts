import { findNamed } from '../../../shared/agent/engine/messages/branches.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import type { MessageRequest } from '../../../shared/cluster/commands/sessions.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'

/** The messages of a session, and the ids of those that are being answered or wait: those of their clients, and those of their runs. */
export type KnownMessages = { all: readonly Message[]; accepted: ReadonlySet<string> }

/** Throws `invalid_request` for a message that is to follow one which the session does not have. */
export function checkPlace(message: MessageRequest, { all, accepted }: KnownMessages): void {
  const names = namesOf(message)
  if (names === undefined || names.length === 0) return
  if (names.some((name) => accepted.has(name) || findNamed(all, name))) return
  throw invalidRequest('after must be the id of a message of this session: GET /sessions/{id}/messages lists them', {
    param: '/after',
  })
}

/** The id of the message that this one follows, `null` when it begins a branch, and `undefined` when it continues the head. */
export function placeOf(message: MessageRequest, all: readonly Message[]): string | null | undefined {
  const names = namesOf(message)
  if (names?.length === 0) return null
  if (names === undefined) return message.id === undefined ? undefined : findNamed(all, message.id)?.stamp?.parent
  for (const name of names.toReversed()) {
    const found = findNamed(all, name, message.texts?.[name])
    if (found) return found.stamp?.id
  }
  return undefined // The run that it should follow was cancelled before it began, or the message was compacted meanwhile.
}

function namesOf({ path, after }: MessageRequest): readonly string[] | undefined {
  if (path !== undefined || after === undefined) return path
  return after === null ? [] : [after]
}
