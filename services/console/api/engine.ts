import { type CallOptions, type Query, Transport } from '../../../shared/client/http/transport.ts'
import { learnServerTime } from '../base/clock.ts'
import { leaving, ofTab } from '../base/tab.ts'
import { Pace } from './pace.ts'

/** Returns the token of the signed-in person, or a newer one if the server refused this token. `undefined` if the server needs no token. */
export type TokenSource = (refused?: string) => Promise<string | undefined>

type Engine = { transport?: Transport; base: string; token?: TokenSource | undefined }

const engine = ofTab((): Engine => ({ base: '' }))

/** Opens the connection to the API, for everything below. */
export function openEngine(basePath: string, token: TokenSource | undefined): void {
  const base = apiAt(basePath)
  const opened = new Transport({ url: base, token, fetch: fetchUntil(leaving().signal) })
  Object.assign(engine(), { transport: opened, base, token } satisfies Engine)
}

export const apiAt = (basePath: string): string => location.origin + basePath

/** The address of the API for display in commands. */
export const apiUrl = (): string => engine().base

/** Whether the API wants a token. */
export const needsToken = (): boolean => engine().token !== undefined

/** A token for a request outside the transport, or a newer one if the server refused this token. */
export const newestToken = async (refused?: string): Promise<string | undefined> => engine().token?.(refused)

export function transport(): Transport {
  const { transport: opened } = engine()
  if (opened === undefined) throw new Error('nobody is signed in yet')
  return opened
}

export const get = <T>(path: string, query?: Query, options?: CallOptions): Promise<T> =>
  transport().json<T>('GET', path, { query, ...options })

export const send = <T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> => {
  kept().clear()
  return transport().json<T>(method, path, { body })
}

/** The entries that each list showed last (`kept-list.ts`). Each change by the person empties it, because any list may show the changed data. */
export const kept = ofTab(() => new Map<string, unknown>())

/** How often the tab may read by itself. */
export const pace = ofTab(() => new Pace())

/** Sends requests until the person signs out. Each answer contains the server's time, which the countdowns use. */
const fetchUntil =
  (leave: AbortSignal): typeof fetch =>
  async (input, init) => {
    const response = await fetch(input, {
      ...init,
      signal: AbortSignal.any([leave, ...(init?.signal ? [init.signal] : [])]),
    })
    learnServerTime(response.headers.get('date'))
    if (!response.url.endsWith('/events')) pace().learn(response.headers) // Requests of the stream are counted separately.
    return response
  }
