import type { RequestListener } from 'node:http'

/** Answers every request with the same JSON. */
export const json = (value: unknown): RequestListener => text(JSON.stringify(value))

export function text(
  body: string,
  headers: Record<string, string> = { 'Content-Type': 'application/json' },
): RequestListener {
  return (_req, res) => void res.writeHead(200, headers).end(body)
}

export function status(code: number, headers: Record<string, string> = {}): RequestListener {
  return (_req, res) => void res.writeHead(code, headers).end()
}

/** Accepts the request and never answers. */
export const hang: RequestListener = () => {}

/** Sends headers and the beginning of a body, then nothing. */
export const stall: RequestListener = (_req, res) => void res.writeHead(200).write('{"keys":[')
