import { type CallOptions, type Query, Transport } from '../../../shared/client/http/transport.ts'
import { learnServerTime } from '../base/clock.ts'

/** Gives the token of the signed-in person, and after a refusal a newer one. `undefined` where the server wants none. */
export type TokenSource = (refused?: string) => Promise<string | undefined>

let opened: Transport | undefined
let base = ''
let isGuarded = false

/** Opens the connection to the API, for everything below. */
export function openEngine(basePath: string, token: TokenSource | undefined): void {
  isGuarded = token !== undefined
  base = location.origin + basePath
  opened = new Transport({ url: base, token, fetch: fetchTimed })
}

/** The address of the API, as it is shown in commands. */
export const apiUrl = (): string => base

/** Whether the API wants a token. */
export const needsToken = (): boolean => isGuarded

export function transport(): Transport {
  if (opened === undefined) throw new Error('nobody is signed in yet')
  return opened
}

export const get = <T>(path: string, query?: Query, options?: CallOptions): Promise<T> =>
  transport().json<T>('GET', path, { query, ...options })

export const send = <T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> =>
  transport().json<T>(method, path, { body })

/** Every answer tells the server's time, to which deadlines are counted. */
const fetchTimed: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  learnServerTime(response.headers.get('date'))
  return response
}
