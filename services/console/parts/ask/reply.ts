import type { Schema } from '../../../../shared/client/api.ts'
import { ApiError } from '../../../../shared/client/errors.ts'
import { get, send } from '../../api/engine.ts'
import { type Ask, pending, settle } from '../../api/pending.ts'
import { tell, tellFailure } from '../../base/announce.ts'

export type Reply =
  | { allow: true; remember?: 'session'; input?: Schema<'JsonObject'> }
  | { allow: false; reason?: string }

export type Decided = Schema<'DecidedPermission'>

/** Sends a reply. When somebody else was first, it says who. Throws what is wrong with a changed input. */
export async function reply(ask: Ask, answer: Reply): Promise<void> {
  try {
    await send('POST', `/sessions/${encodeURIComponent(ask.session_id)}/permissions/${ask.id}`, answer)
    settle(ask.id)
    tell(`${answer.allow ? 'Allowed' : 'Denied'}: ${ask.tool_name}`)
  } catch (cause) {
    if (!(cause instanceof ApiError) || (cause.status !== 409 && cause.status !== 404)) throw cause
    const decided = await findDecided(ask.id).catch(() => undefined)
    tell(`Too late: ${decided ? sentenceOf(decided) : 'somebody else has answered, or the time was over'}.`, 'bad')
    settle(ask.id)
  }
}

/** Denies several requests, and says how many. Nothing allows several at once. */
export async function denyAll(asks: readonly Ask[], reason: string): Promise<void> {
  for (const ask of asks)
    await send('POST', `/sessions/${encodeURIComponent(ask.session_id)}/permissions/${ask.id}`, {
      allow: false,
      reason,
    }).catch(tellFailure)
  pending().reload()
}

/** `denied by ada`, `allowed by bob with changes`. */
export function sentenceOf({ allow, how, by, edited }: Decided): string {
  if (how === 'timeout') return 'nobody answered in time, so it was denied'
  if (how === 'cancelled') return 'it was withdrawn, because its run ended'
  return `${allow ? 'allowed' : 'denied'} by ${by ?? 'somebody'}${edited ? ' with changes' : ''}`
}

/** A decision is written a moment after it is made. */
const ATTEMPTS = 6
const PAUSE_MS = 500

/** The record of a decided request among the newest. */
export async function findDecided(id: string): Promise<Decided | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { permissions } = await get<Schema<'ListPermissionsResponse'>>('/permissions', {
      state: 'decided',
      limit: 100,
    })
    const found = (permissions as Decided[]).find((each) => each.id === id)
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return undefined
}
