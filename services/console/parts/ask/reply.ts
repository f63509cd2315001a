import type { Schema } from '../../../../shared/client/api.ts'
import { ApiError } from '../../../../shared/client/errors.ts'
import { get, send } from '../../api/engine.ts'
import { type Ask, pending, settle } from '../../api/pending.ts'
import { tell, tellFailure } from '../../base/announce.ts'

export type Reply =
  | { allow: true; remember?: 'session'; input?: Schema<'JsonObject'> }
  | { allow: false; reason?: string }

export type Decided = Schema<'DecidedPermission'>

/** Sends a reply, and returns whether it counts. When somebody else was first, it says who. Throws what is wrong with a changed input. */
export async function reply(ask: Ask, answer: Reply): Promise<boolean> {
  try {
    await send('POST', `/sessions/${encodeURIComponent(ask.session_id)}/permissions/${ask.id}`, answer)
    settle(ask.id)
    tell(`${answer.allow ? 'Allowed' : 'Denied'}: ${ask.tool_name}`)
    return true
  } catch (cause) {
    if (!(cause instanceof ApiError) || (cause.status !== 409 && cause.status !== 404)) throw cause
    const decided = await findDecided(ask.id).catch(() => undefined)
    tell(`Too late: ${decided ? sentenceOf(decided) : 'somebody else has answered, or the time was over'}.`, 'bad')
    settle(ask.id)
    return false
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

type Outcome = Pick<Decided, 'allow' | 'how' | 'by'> & { edited?: boolean }

/** `denied by ada`, `allowed by bob with changes`. */
export function sentenceOf({ allow, how, by, edited = false }: Outcome): string {
  if (how === 'timeout') return 'nobody answered in time, so it was denied'
  if (how === 'cancelled') return 'it was withdrawn, because its run ended'
  return `${allow ? 'allowed' : 'denied'} by ${by ?? 'somebody'}${edited ? ' with changes' : ''}`
}

/** A decision is written a moment after it is made. */
const ATTEMPTS = 6
const PAUSE_MS = 500

/** The record of a request that this tab knows to be decided. */
async function findDecided(id: string): Promise<Decided | undefined> {
  const found = await findRequest(id)
  return found && isDecided(found) ? found : undefined
}

export const isDecided = (request: Ask | Decided): request is Decided => 'decided_at' in request

/** A request that waits, or was decided. `undefined` for one that is not known. */
export async function findRequest(id: string): Promise<Ask | Decided | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      return await get<Ask | Decided>(`/permissions/${encodeURIComponent(id)}`)
    } catch (cause) {
      if (!(cause instanceof ApiError) || (cause.status !== 404 && cause.status !== 400)) throw cause
      if (cause.status === 400) return undefined
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return undefined
}
