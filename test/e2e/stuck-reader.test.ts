import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { bytesInKernel } from '../support/kernel-queues.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { until } from '../support/until.ts'

const KIB = 1024
const HELD_KIB = 256
/** The network buffers of the client take about 4 MiB. */
const ANSWER_KIB = 24 * KIB
const WRITE_CHARS = 8 * KIB
const LOOK_EVERY_MS = 200
/** A sender that has sent nothing in so many looks is stuck. */
const LOOKS = 8

/** A model that answers `/deltas KIB` with deltas of that size without an end, and reports what the engine has read of them. */
class EndlessModel {
  readonly #sockets = new Map<number, Socket>()
  readonly #server: Server

  constructor() {
    this.#server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', (request) => void this.#answer(socket, Number(/\/deltas (\d+)/.exec(String(request))?.[1])))
    })
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${this.#port}/v1`
  }

  /** Bytes of text that the engine has read, of deltas of this size; `undefined` before it has asked. */
  readChars(kib: number): number | undefined {
    const socket = this.#sockets.get(kib)
    if (!socket?.remotePort) return undefined
    const bytes = socket.bytesWritten - socket.writableLength - bytesInKernel(this.#port, socket.remotePort)
    return (bytes * kib * KIB) / deltaOf(kib).length
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.values()) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async #answer(socket: Socket, kib: number): Promise<void> {
    this.#sockets.set(kib, socket)
    const delta = deltaOf(kib)
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n')
    for (let sent = 0; sent < ANSWER_KIB / kib; sent++) {
      for (let at = 0; at < delta.length; at += WRITE_CHARS) {
        if (!socket.write(delta.slice(at, at + WRITE_CHARS))) await once(socket, 'drain')
      }
    }
  }
}

const deltaOf = (kib: number): string =>
  `data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(kib * KIB)}"}}]}\n\n`

const FRAME_CHARS = 'id: 1000\nevent: text_delta\ndata: {"text":""}\n\n'.length

/** A client that starts a run and reads the first bytes of the answer only. */
class StuckClient {
  readonly #socket: Socket
  readonly #kib: number
  readonly #port: number

  constructor({ url }: Product, kib: number) {
    const { port, pathname } = new URL(url)
    this.#kib = kib
    this.#port = Number(port)
    this.#socket = connect(this.#port, '127.0.0.1')
    this.#socket.on('error', () => {}).once('data', () => this.#socket.pause())
    const body = JSON.stringify({ prompt: `/deltas ${kib}` })
    const head = `POST ${pathname}/agent/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`
    this.#socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
  }

  /** Bytes of text that have left the product. */
  get receivedChars(): number {
    const bytes = this.#socket.bytesRead + bytesInKernel(this.#port, this.#socket.localPort ?? 0)
    const chars = this.#kib * KIB
    return (bytes * chars) / (chars + FRAME_CHARS)
  }

  leave(): void {
    this.#socket.destroy()
  }
}

inBothForms('a run behind a client that is stuck', (startProduct) => {
  const model = new EndlessModel()
  let product: Product
  before(async () => {
    product = await startProduct({ MODEL_BASE_URL: await model.listen() })
  })
  after(async () => {
    await product.close()
    await model.close()
  })

  for (const kib of [1, 900]) {
    it(`stops reading from the provider at ${HELD_KIB} KiB and the delta that it reads, when deltas have ${kib} KiB`, async () => {
      const client = new StuckClient(product, kib)
      const read: (number | undefined)[] = []
      const isStuck = () => {
        read.push(model.readChars(kib))
        const last = read.slice(-LOOKS)
        return Number(last[0]) > KIB * KIB && last.length === LOOKS && last.every((each) => each === last[0])
      }
      await until(isStuck, { what: 'the run to stop reading', everyMs: LOOK_EVERY_MS })
      const heldKib = (Number(read.at(-1)) - client.receivedChars) / KIB
      client.leave()
      expect(heldKib).to.be.within(1, HELD_KIB + kib)
    })
  }
})
