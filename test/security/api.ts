import { setTimeout as sleep } from 'node:timers/promises'
import { readAnswer } from '../support/read-answer.ts'

/** A response with its body as text. */
export type Reply = { status: number; headers: Headers; text: string }

export type Call = { method: string; path: string; body?: unknown; headers?: Record<string, string> }

/** Sends one request; a body is sent as JSON, a form as it is. Reads the response to its end, or until `signal`; of an endless stream the beginning. */
export async function call(
  url: string,
  { method, path, body, headers = {} }: Call,
  signal?: AbortSignal,
): Promise<Reply> {
  const isForm = body instanceof FormData
  const response = await fetch(url + path, {
    method,
    headers: { ...(body !== undefined && !isForm && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  return { status: response.status, headers: response.headers, text: await readAnswer(path, response) }
}

/** As `call`, but an answer of 429 is waited out (`Retry-After`) and the request is sent again. For the requests before and after an attack. */
export async function callPatiently(url: string, request: Call): Promise<Reply> {
  for (;;) {
    const reply = await call(url, request)
    if (reply.status !== 429) return reply
    await sleep(1_000 * Number(reply.headers.get('retry-after') ?? 1))
  }
}

/** As `callPatiently`, and throws when the status is not 2xx. */
export async function prepare(url: string, request: Call): Promise<Reply> {
  const reply = await callPatiently(url, request)
  if (reply.status > 299)
    throw new Error(`${request.method} ${request.path} was answered ${reply.status}: ${reply.text}`)
  return reply
}

/** The fields of a transcription, with a short file. */
export function fileForm(text: string): FormData {
  const form = new FormData()
  form.append('file', new Blob([text]), 'a.txt')
  return form
}

export function transcriptionForm(instance: string, file = new Blob(['RIFF'])): FormData {
  const form = new FormData()
  form.append('provider_instance', instance)
  form.append('model', 'whisper')
  form.append('file', file, 'a.wav')
  return form
}
