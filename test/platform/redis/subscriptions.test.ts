import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import type { RedisClient } from '../../../shared/platform/redis/connect.ts'
import { createSubscriptions } from '../../../shared/platform/redis/subscriptions.ts'
import { until } from '../../support/until.ts'

/** A connection for subscriptions that notes its commands. It refuses the next ones while `refusals` is above 0. */
class Listener extends EventEmitter {
  readonly commands: string[] = []
  status = 'ready'
  refusals = 0
  readonly isCluster: boolean

  constructor(isCluster: boolean) {
    super()
    this.isCluster = isCluster
  }

  readonly subscribe = (...channels: string[]) => this.#note('subscribe', channels)
  readonly ssubscribe = (...channels: string[]) => this.#note('ssubscribe', channels)
  readonly unsubscribe = (...channels: string[]) => this.#note('unsubscribe', channels)
  readonly sunsubscribe = (...channels: string[]) => this.#note('sunsubscribe', channels)

  async connect(): Promise<void> {
    this.commands.push('connect')
  }

  disconnect(): void {
    this.status = 'end'
    this.emit('end')
  }

  async #note(name: string, channels: readonly string[]): Promise<void> {
    this.commands.push(`${name} ${channels.join(' ')}`)
    if (this.refusals-- > 0) throw new Error('no subscriber for this slot')
  }
}

const open = (isCluster: boolean) => {
  const clients: Listener[] = []
  const connect = () => {
    const client = new Listener(isCluster)
    clients.push(client)
    return client as unknown as RedisClient
  }
  const scope = { prefix: 'ae:', tracked: <T>(answer: Promise<T>) => answer }
  const { subscriptions, close } = createSubscriptions(connect, scope)
  const [listener] = clients as [Listener]
  return { clients, listener, subscriptions, close }
}

describe('the subscriptions of a process', () => {
  it('at one Redis what processes publish and what scripts publish come over channels of one kind', async () => {
    const { listener, subscriptions } = open(false)
    const heard: string[] = []
    await subscriptions.subscribe('wk:1', (message) => heard.push(`own ${message}`))
    await subscriptions.subscribeToScripts('members', (message) => heard.push(`script ${message}`))
    listener.emit('messageBuffer', Buffer.from('ae:wk:1'), Buffer.from('a'))
    listener.emit('messageBuffer', Buffer.from('ae:members'), Buffer.from('b'))
    listener.emit('messageBuffer', Buffer.from('ae:other'), Buffer.from('c'))
    expect(heard).to.deep.equal(['own a', 'script b'])
    listener.commands.length = 0
    await subscriptions.resubscribe()
    expect(listener.commands).to.deep.equal(['subscribe ae:wk:1 ae:members'])
  })

  it('D33.2: in a Redis Cluster the channels of processes are subscribed to one by one, at the node of each, and those of scripts as before', async () => {
    const { listener, subscriptions } = open(true)
    await subscriptions.subscribe('wk:1', () => {})
    await subscriptions.subscribe('gw:2', () => {})
    await subscriptions.subscribeToScripts('members', () => {})
    listener.commands.length = 0
    await subscriptions.resubscribe()
    expect(listener.commands.toSorted()).to.deep.equal([
      'ssubscribe ae:gw:2',
      'ssubscribe ae:wk:1',
      'subscribe ae:members',
    ])
    listener.commands.length = 0
    await subscriptions.unsubscribe('wk:1')
    await subscriptions.unsubscribeFromScripts('members')
    expect(listener.commands).to.deep.equal(['sunsubscribe ae:wk:1', 'unsubscribe ae:members'])
  })

  it('over a new connection they are made again, until that has worked or the connection is gone', async () => {
    const { listener, subscriptions } = open(true)
    await subscriptions.subscribe('wk:1', () => {})
    listener.commands.length = 0
    listener.refusals = 2
    listener.emit('ready')
    await until(() => listener.commands.length === 3, { what: 'the third attempt' })
    listener.refusals = 1
    listener.emit('ready')
    listener.status = 'end'
    await subscriptions.resubscribe()
    expect(listener.commands).to.have.length(5)
  })

  it('a channel whose subscription was refused is not kept', async () => {
    const { listener, subscriptions } = open(false)
    listener.refusals = 1
    expect(await subscriptions.subscribe('wk:1', () => {}).catch(String)).to.include('no subscriber')
    expect(listener.commands).to.deep.equal(['subscribe ae:wk:1', 'unsubscribe ae:wk:1'])
    listener.commands.length = 0
    await subscriptions.resubscribe()
    expect(listener.commands).to.deep.equal([])
  })
  it('D33.2: a client that has ended is replaced by a new one, with the same subscriptions, until they are closed', async () => {
    const { clients, subscriptions, close } = open(true)
    const heard: string[] = []
    await subscriptions.subscribe('wk:1', (message) => heard.push(String(message)))
    subscriptions.reconnect()
    const second = await until(() => clients[1], { what: 'the second client' })
    second.emit('ready')
    await until(() => second.commands.length === 2, { what: 'the subscription' })
    expect(second.commands).to.deep.equal(['connect', 'ssubscribe ae:wk:1'])
    second.emit('smessageBuffer', Buffer.from('ae:wk:1'), Buffer.from('a'))
    expect(heard).to.deep.equal(['a'])
    close()
    second.emit('smessageBuffer', Buffer.from('ae:wk:1'), Buffer.from('b'))
    expect(heard).to.deep.equal(['a'])
  })
})
