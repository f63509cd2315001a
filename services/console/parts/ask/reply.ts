import type { Schema } from '../../../../shared/client/api.ts'
import { ApiError } from '../../../../shared/client/errors.ts'
import { caller } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { type Ask, pending, settle } from '../../api/pending.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { serverNow } from '../../base/clock.ts'
import { counted } from '../../base/format.ts'
import { ofTab } from '../../base/tab.ts'

export type Reply =
  | { allow: true; remember?: 'session'; input?: Schema<'JsonObject'> }
  | { allow: false; reason?: string }

export type Decided = Schema<'DecidedPermission'>

/** The answers of this tab, in the form of the server's records, which follow a moment later. */
export const given = ofTab(() => new Map<string, Decided>())

/** Sends a reply, and returns whether it was accepted. If someone else answered first, it shows who. Throws if a changed input is invalid. */
export async function reply(ask: Ask, answer: Reply): Promise<boolean> {
  try {
    await post(ask, answer)
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

/** Gives several requests the same answer, one after the other, and shows how many. */
export async function replyAll(asks: readonly Ask[], answer: Reply): Promise<void> {
  let count = 0
  for (const ask of asks) await post(ask, answer).then(() => count++, tellFailure)
  if (count < asks.length) pending().reload()
  if (count > 0) tell(`${answer.allow ? 'Allowed' : 'Denied'}: ${counted(count, 'request')}`)
}

async function post(ask: Ask, answer: Reply): Promise<void> {
  await send('POST', `/sessions/${encodeURIComponent(ask.session_id)}/permissions/${ask.id}`, answer)
  given().set(ask.id, receiptOf(ask, answer))
  settle(ask.id)
}

/** The preview is that of the input which was asked for. */
function receiptOf({ preview, ...ask }: Ask, answer: Reply): Decided {
  const { input, remember } = answer.allow ? answer : { input: undefined, remember: undefined }
  return {
    ...ask,
    ...(input ? { input } : preview && { preview }),
    ...(!answer.allow && answer.reason !== undefined && { reason: answer.reason }),
    ...(caller().peek() && { by: String(caller().peek()?.subject) }),
    allow: answer.allow,
    how: 'reply',
    edited: input !== undefined,
    remembered: remember !== undefined,
    decided_at: new Date(serverNow()).toISOString(),
  }
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

/** A request that waits or was decided; `undefined` for an unknown one. */
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

/** After this many equal answers the console suggests to allow the tool always. */
const HABIT = 3

/**
 * How often this person has allowed the tool without changes in the session, if that is often enough: counted in this tab, and with `isWide` also
 * in the server's records.
 */
export async function habitOf({ session_id, tool_name }: Ask, isWide: boolean): Promise<number> {
  const known = isWide ? await decidedLately().catch(() => []) : [] // A server without a store has none.
  const all = new Map([...known.map((each) => [each.id, each] as const), ...given()])
  const by = caller().peek()?.subject
  const equal = [...all.values()].filter(
    (each) =>
      each.session_id === session_id && each.tool_name === tool_name && each.allow && !each.edited && each.by === by,
  )
  return equal.length >= HABIT ? equal.length : 0
}

const decidedLately = async (): Promise<Decided[]> =>
  (await get<Schema<'ListPermissionsResponse'>>('/permissions', { state: 'decided', limit: 100 }))
    .permissions as Decided[]
