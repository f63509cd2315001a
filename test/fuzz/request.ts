/** The product's API_TOKEN during the fuzzing. */
export const TOKEN = 'fuzz-token'

/** `undefined` leaves a header out, a list sends it several times. */
export type Headers = Record<string, string | readonly string[] | undefined>

export type Request = { method: string; path: string; headers?: Headers; body?: unknown }

/** Encodes a request. A body that is neither text nor a buffer is sent as JSON. Given headers replace the default ones. */
export function request({ method, path, headers = {}, body }: Request): Buffer {
  const payload = payloadOf(body)
  const all = { ...defaults(payload), ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => `${name}: ${each}`),
  )
  const head = [`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), payload ?? Buffer.alloc(0)])
}

export const get = (path: string, headers?: Headers): Buffer =>
  request({ method: 'GET', path, ...(headers && { headers }) })

export const post = (path: string, body?: unknown, headers?: Headers): Buffer =>
  request({ method: 'POST', path, body, ...(headers && { headers }) })

/** Concatenates bytes that no HTTP library would send. Text is encoded as Latin-1. */
export const raw = (...parts: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))

function payloadOf(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

function defaults(payload: Buffer | undefined): Headers {
  const always = { Host: '127.0.0.1', Authorization: `Bearer ${TOKEN}` }
  if (!payload) return always
  return { ...always, 'Content-Type': 'application/json', 'Content-Length': String(payload.length) }
}
