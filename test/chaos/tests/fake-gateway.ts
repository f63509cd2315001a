import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts an HTTP server whose answers a test determines. */
export async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export const frame = (seq: number, event: string, data: object = {}) =>
  `id: ${seq}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

/** Sends the headers of a stream, then frames. */
export function send(res: ServerResponse, ...frames: string[]): ServerResponse {
  res.writeHead(200, { 'x-run-id': 'run_1', 'content-type': 'text/event-stream' })
  res.write(`: ok\n${frames.join('')}`)
  return res
}
