import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createEgress, type EgressOptions } from '../../../shared/platform/net/egress.ts'
import type { Egress, EgressRequest } from '../../../shared/platform/net/port.ts'

const closing: (() => unknown)[] = []

/** Closes everything that the test opened; for `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0)) await close()
}

/** Starts a listener on both loopback addresses that counts connections and closes them. */
export async function listen(): Promise<{ port: number; connections: () => number }> {
  let count = 0
  const server = createTcpServer((socket) => {
    count += 1
    socket.destroy()
  }).listen(0, '::')
  await once(server, 'listening')
  closing.push(() => server.close())
  return { port: (server.address() as AddressInfo).port, connections: () => count }
}

/** Starts an HTTP server on the loopback address and returns its origin. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An egress that allows private addresses by default, closed after the test. */
export function openEgress(options: Partial<EgressOptions> = {}): Egress {
  const egress = createEgress({ allowPrivate: true, connectTimeoutMs: 2_000, ...options })
  closing.push(egress.close)
  return egress
}

export const request = (fields: Partial<EgressRequest> = {}): EgressRequest => ({
  signal: new AbortController().signal,
  maxBytes: 1_000_000,
  timeoutMs: 5_000,
  ...fields,
})

export const reasonOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (reason: unknown) => reason,
  )

export async function failureOf(work: Promise<unknown>): Promise<AppError> {
  const reason = await reasonOf(work)
  if (reason instanceof AppError) return reason
  throw new Error('expected an AppError', { cause: reason })
}

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
