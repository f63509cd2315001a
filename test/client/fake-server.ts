/** A request as the client sends it. */
export type Sent = { method: string; path: string; headers: Headers; body: unknown }

/** Answers a request, or throws as `fetch` does when a connection breaks. */
export type Answer = (sent: Sent) => Response | Promise<Response>

export const json = (body: unknown, status = 200): Response => Response.json(body, { status })

export const refusal = (status: number, code: string): Response =>
  json({ error: { type: 'refused', code, message: code } }, status)

export const breakOff: Answer = () => {
  throw new TypeError('fetch failed')
}

export type SentEvent = { id: number; event: string; data: object }

/** A stream of events that ends behind them. The next connection comes at once. */
export function stream(events: readonly SentEvent[], headers: Record<string, string> = {}): Response {
  const frames = events.map(({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  return new Response(`retry: 0\n\n${frames.join('')}`, {
    headers: { 'content-type': 'text/event-stream', ...headers },
  })
}

/** A server in the place of `fetch`, which answers requests one after the other. A request too many fails. */
export function fakeServer(answers: readonly Answer[]) {
  const left = [...answers]
  const sent: Sent[] = []
  const send: typeof fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(String(input))
    const body: unknown = init.body === undefined ? undefined : JSON.parse(String(init.body))
    const request = { method: init.method ?? 'GET', path: pathname + search, headers: new Headers(init.headers), body }
    sent.push(request)
    const answer = left.shift()
    if (!answer) throw new Error(`an unexpected request: ${request.method} ${request.path}`)
    return answer(request)
  }
  return { options: { url: 'http://engine.test', fetch: send }, sent, paths: () => sent.map(pathOf) }
}

const pathOf = ({ method, path }: Sent): string => `${method} ${path}`
