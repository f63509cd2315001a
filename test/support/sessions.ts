import { expect } from 'chai'
import type { EventStream } from './event-stream.ts'
import type { Product } from './product.ts'

/** Creates a session, and gives its id. */
export async function createSession(product: Product, body?: unknown): Promise<string> {
  const { status, body: created } = await product.call('POST', '/sessions', body)
  expect(status).to.equal(201)
  return (created as { session_id: string }).session_id
}

/** Sends a message, and gives the stream of its run. */
export const sendMessage = (product: Product, session: string, prompt: string): Promise<EventStream> =>
  product.stream(`/sessions/${session}/messages`, { prompt })
