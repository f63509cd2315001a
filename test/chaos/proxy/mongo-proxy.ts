import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../harness/seed.ts'
import type { Faults } from './faults.ts'
import { Pipe } from './pipe.ts'

type Options = { target: string; random: Random }
type Connection = { sockets: readonly Socket[]; up: Pipe; down: Pipe }

const NO_DELAY = { latencyMs: 0, jitterMs: 0 }
/** Behind the header of a message, its flags, the kind of its section, and the length and type of the first field. */
const COMMAND_AT = 26
const WRITES = ['insert', 'update', 'delete', 'findAndModify']

/** Stands between the product and one mongod: refuses connections, holds everything back, or slows writes down. Latency and jitter are for writes alone. */
export class MongoProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #options: Options
  readonly #connections = new Set<Connection>()
  #faults: Faults = {}

  private constructor(options: Options) {
    this.#options = options
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#connect(client)).listen(0, '127.0.0.1')
  }

  static async start(options: Options): Promise<MongoProxy> {
    const proxy = new MongoProxy(options)
    await once(proxy.#server, 'listening')
    return proxy
  }

  /** The address of a store that is reached through it. */
  get url(): string {
    return `mongodb://127.0.0.1:${(this.#server.address() as AddressInfo).port}/?directConnection=true`
  }

  set(faults: Faults): void {
    this.#faults = faults
    if (faults.refuse) for (const each of this.#connections) this.#end(each)
    for (const { up, down } of this.#connections) {
      up.update()
      down.update()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    for (const each of this.#connections) this.#end(each)
  }

  #connect(client: Socket): void {
    if (this.#faults.refuse) return void client.destroy()
    const [host = '', port] = this.#options.target.split(':')
    const server = connect({ host, port: Number(port), noDelay: true, allowHalfOpen: true })
    let isWrite = false
    const faultsUp = () => ({ ...this.#faults, ...(this.#isSlow && !isWrite && NO_DELAY) })
    const faultsDown = () => ({ ...this.#faults, ...(this.#isSlow && NO_DELAY) })
    const { random } = this.#options
    const onCut = () => {}
    const up = new Pipe({ direction: 'toServer', source: client, sink: server, faults: faultsUp, random, onCut })
    const down = new Pipe({ direction: 'toClient', source: server, sink: client, faults: faultsDown, random, onCut })
    const connection = { sockets: [client, server], up, down }
    this.#connections.add(connection)
    client.on('data', (bytes: Buffer) => {
      isWrite = isWriteCommand(bytes)
      up.push(bytes)
    })
    server.on('data', (bytes: Buffer) => down.push(bytes))
    for (const socket of connection.sockets)
      socket.on('error', () => this.#end(connection)).on('close', () => this.#end(connection))
    up.update()
    down.update()
  }

  get #isSlow(): boolean {
    return this.#faults.latencyMs !== undefined
  }

  #end(connection: Connection): void {
    this.#connections.delete(connection)
    connection.up.close()
    connection.down.close()
    for (const socket of connection.sockets) socket.destroy()
  }
}

const isWriteCommand = (bytes: Buffer): boolean => {
  const name = bytes.toString('latin1', COMMAND_AT, COMMAND_AT + 14)
  return WRITES.some((each) => name.startsWith(`${each}\0`))
}
