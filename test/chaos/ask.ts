import { parseJson } from '../../shared/kernel/json.ts'
import { now } from './history.ts'

export type Asked = {
  method?: string
  path: string
  body?: unknown
  headers?: Readonly<Record<string, string>>
  withinMs?: number
}

/** The answer to a request. Status 0: there was none. */
export type Answered = { status: number; ms: number; body: unknown; headers: Headers | undefined }

/** Sends a request whose answer is not a stream. Never throws. */
export async function ask(
  url: string,
  { method, path, body, headers = {}, withinMs = 15_000 }: Asked,
): Promise<Answered> {
  const from = now()
  const hasBody = body !== undefined
  try {
    const response = await fetch(url + path, {
      method: method ?? (hasBody ? 'POST' : 'GET'),
      headers: { ...(hasBody && { 'content-type': 'application/json' }), ...headers },
      ...(hasBody && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(withinMs),
    })
    const text = await response.text()
    return { status: response.status, ms: now() - from, body: parseJson(text) ?? text, headers: response.headers }
  } catch {
    return { status: 0, ms: now() - from, body: undefined, headers: undefined }
  }
}
