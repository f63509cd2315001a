import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { inTurns } from '../../services/http/in-turns.ts'
import { createServer, type HttpServer } from '../../services/http/server.ts'

const REQUEST_MS = 5

/** The work of a request, by its own path. */
const block = () => {
  for (const until = performance.now() + REQUEST_MS; performance.now() < until; );
}

describe('requests that come together', () => {
  let server: HttpServer
  let port: number
  let served: string[]
  const sockets: Socket[] = []

  const connected = async (...paths: string[]) => {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
    return socket
  }
  const textOf = async (socket: Socket, count: number) => {
    let text = ''
    for await (const chunk of socket) if ((text += chunk).split('HTTP/1.1 200').length > count) break
    return text
  }

  beforeEach(async () => {
    served = []
    const app = inTurns((req, res) => {
      served.push(req.url ?? '')
      block()
      res.end(req.url)
    })
    server = createServer(app)
    port = (await server.listen(0, '127.0.0.1')).port
  })

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await server.close(0)
  })

  it('are handed to the app one a turn of the event loop when each takes longer than the turn, in order of arrival', async () => {
    const paths = Array.from({ length: 12 }, (_, i) => `/${i}`)
    const socket = await connected(...paths) // Pipelined: all are read in the same turn.
    const state = { isOver: false }
    const answered = textOf(socket, paths.length).then((text) => {
      state.isOver = true
      return text
    })
    let most = 0
    while (!state.isOver) {
      const before = served.length
      await nextTurn()
      most = Math.max(most, served.length - before)
    }
    expect(served).to.deep.equal(paths)
    expect(most).to.be.at.most(2)
    expect((await answered).match(/\/\d+(?=HTTP|$)/g)).to.deep.equal(paths)
  })

  it('are not handed to the app when their client leaves before their turn', async () => {
    const waiting = await connected('/first', '/second', '/third')
    while (served.length === 0) await nextTurn()
    waiting.destroy()
    await once(waiting, 'close')
    const other = await connected('/other')
    await textOf(other, 1)
    expect(served).to.include('/other').and.not.include('/third')
  })
})
