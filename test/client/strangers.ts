import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE_TYPE = { 'content-type': 'text/event-stream' }

/** What answers in the place of the server, by its path. */
const ANSWERS: Readonly<Record<string, [number, Record<string, string>, string]>> = {
  page: [200, { 'content-type': 'text/html' }, `<html>${'a sign-in page '.repeat(100)}</html>`],
  redirect: [302, { location: '/page/' }, '<a href="/page/">moved</a>'],
  moved: [308, { location: '/page/' }, ''],
  list: [200, JSON_TYPE, '[]'],
  text: [200, JSON_TYPE, '"ok"'],
  cut: [200, JSON_TYPE, '{"runs": ['],
  deep: [200, JSON_TYPE, '['.repeat(50_000)],
  unknown: [200, JSON_TYPE, '{"hello": 1}'],
  stream: [200, SSE_TYPE, 'id: 1\nevent: text\ndata: <html>\n\n'],
  numbers: [200, SSE_TYPE, 'id: one\nevent: text\ndata: {"text": "a"}\n\n'],
  fields: [200, SSE_TYPE, 'id: 1\nevent: text\ndata: {"hello": 1}\n\n'],
}

/** A server at each of whose addresses something else than an agent-engine answers. */
export type Strangers = {
  urls: readonly string[]
  nameOf(url: string): string
  /** How many requests came, by the name of the address. */
  asked: ReadonlyMap<string, number>
  close(): void
}

export async function startStrangers(): Promise<Strangers> {
  const asked = new Map<string, number>()
  const server = createServer((req, res) => {
    const [, name = ''] = (req.url ?? '').split('/')
    asked.set(name, (asked.get(name) ?? 0) + 1)
    const [status, headers, body] = ANSWERS[name] ?? [404, {}, '']
    res.writeHead(status, { 'x-run-id': 'run_1', ...headers }).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return {
    urls: Object.keys(ANSWERS).map((name) => base + name),
    nameOf: (url) => url.slice(base.length),
    asked,
    close,
  }
}
