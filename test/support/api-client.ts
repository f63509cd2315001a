import { apiContract } from './api-document.ts'
import { EventStream, type StreamChecks } from './event-stream.ts'

export type Reply = { status: number; headers: Headers; text: string; body: unknown }

export type Init = RequestInit & { method: string }

/** Sends a request to the API. Throws when the answer is not as the API description says. */
export async function callApi(url: string, init: Init): Promise<Reply> {
  const { problemsOfAnswer } = await apiContract()
  const response = await fetch(url, init)
  const { status, headers } = response
  const text = await response.text()
  const body = parse(response, text)
  throwFor(
    problemsOfAnswer(init.method, pathOf(url), { status, headers, ...(init.method !== 'HEAD' && { body }) }),
    text,
  )
  return { status, headers, text, body }
}

/** Opens a stream of the API. Throws when the answer, and later each frame, is not as the API description says. */
export async function openStream(url: string, init: Init): Promise<EventStream> {
  const { problemsOfAnswer, problemsOfFrame } = await apiContract()
  const checks: StreamChecks = {
    response(response, text) {
      const { status, headers } = response
      const refusal = text !== undefined && { body: parse(response, text) }
      throwFor(problemsOfAnswer(init.method, pathOf(url), { status, headers, ...refusal }), text)
    },
    frame: (frame) => throwFor(problemsOfFrame(init.method, pathOf(url), frame), JSON.stringify(frame)),
  }
  return EventStream.open(url, init, checks)
}

/** The options of a request. A form is sent as one, any other body as JSON. */
export function initOf(method: string, body?: unknown, headers: Record<string, string> = {}): Init {
  if (body === undefined) return { method, headers }
  if (body instanceof FormData) return { method, headers, body }
  return { method, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/]+(?:\/api)?\/v1/, '')

function parse({ headers }: Response, text: string): unknown {
  const isJson = text !== '' && /^application\/json(;|$)/.test(headers.get('content-type') ?? '')
  return isJson ? JSON.parse(text) : text
}

function throwFor(problem: string, received = ''): void {
  if (problem !== '') throw new Error(`not as the API description says: ${problem}: ${received.slice(0, 1_000)}`)
}
