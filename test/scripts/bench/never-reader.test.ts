import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { NeverReader } from '../../../scripts/bench/never-reader.ts'

const ACCEPTED = { 'x-run-id': 'run_1', 'content-type': 'text/event-stream' }
const MIB = 1024 * 1024

/** Runs `act` against a server that answers every request with `answer`. */
async function withServer(
  answer: (res: ServerResponse) => void,
  act: (request: { port: number; path: string; body: string }) => Promise<void>,
): Promise<void> {
  const server = createServer((_req, res) => answer(res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await act({ port: (server.address() as AddressInfo).port, path: '/v1/agent/run', body: '{}' })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('a client that never reads', () => {
  it('learns the run’s id and leaves the rest of the answer unread, so that the server’s writes fill up', async () => {
    const stalled = Promise.withResolvers<boolean>()
    const answer = (res: ServerResponse) => {
      res.writeHead(200, ACCEPTED).flushHeaders()
      for (let written = 0; written < 64; written++) res.write('x'.repeat(MIB))
      setTimeout(() => stalled.resolve(res.writableLength > 32 * MIB), 200)
    }
    await withServer(answer, async (request) => {
      const reader = new NeverReader(request)
      expect(await reader.runId).to.equal('run_1')
      expect(await stalled.promise).to.equal(true)
      reader.leave()
    })
  })

  it('reads the rest on request and returns the end of the stream', async () => {
    const answer = (res: ServerResponse) => void res.writeHead(200, ACCEPTED).end(`${'x'.repeat(8 * MIB)} the end`)
    await withServer(answer, async (request) => {
      const reader = await NeverReader.open(request)
      expect(await reader.readOn()).to.include(' the end')
    })
  })

  it('a refused run rejects with the refusal', async () => {
    await withServer(
      (res) => void res.writeHead(429).end(),
      async (request) => {
        expect(await new NeverReader(request).runId.catch(String)).to.include('the run was refused: HTTP/1.1 429')
      },
    )
  })

  it('a connection that closes before an answer rejects', async () => {
    await withServer(
      (res) => res.socket?.destroy(),
      async (request) => {
        expect(await NeverReader.open(request).catch(String)).to.include('closed before an answer')
      },
    )
  })
})
