import { expect } from 'chai'
import type { Bus } from '../../shared/cluster/bus/bus.ts'
import { Calls } from '../../shared/cluster/relay/wire/calls.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { until } from '../support/until.ts'

export type BusSetup = {
  /** The bus of one more process. It is closed after the test. */
  connect(): Promise<Bus>
  /** Breaks the connections of all processes. */
  cut(): Promise<void>
  /** Lets them be made again. */
  mend(): Promise<void>
}

/** The tests that every `Bus` passes. */
export function busContract({ connect, cut, mend }: BusSetup): void {
  const send = (bus: Bus, text: string, channel = 'a') => bus.publish(channel, Buffer.from(text))

  /** A process that has subscribed to the channel, and what has come over it. */
  async function listener(channel = 'a'): Promise<{ bus: Bus; heard: string[] }> {
    const [bus, heard] = [await connect(), [] as string[]]
    await bus.subscribe(channel, (message) => heard.push(message.toString()))
    return { bus, heard }
  }

  /** Waits until a message that was published now has come to all of them: so have the earlier ones. */
  async function settle(...listeners: { bus: Bus; heard: string[] }[]): Promise<void> {
    await send(await connect(), 'end')
    await until(() => listeners.every(({ heard }) => heard.at(-1) === 'end'), { what: 'the last message' })
    for (const { heard } of listeners) heard.pop()
  }

  it('a message comes to each process that has subscribed to its channel, the publisher included, and to no other', async () => {
    const [one, two, elsewhere] = [await listener(), await listener(), await listener('b')]
    expect(await send(one.bus, 'hi')).to.equal(2)
    expect(await send(elsewhere.bus, 'there', 'b')).to.equal(1)
    await settle(one, two)
    await until(() => elsewhere.heard.length > 0, { what: 'the message on the other channel' })
    expect([one.heard, two.heard, elsewhere.heard]).to.deep.equal([['hi'], ['hi'], ['there']])
  })

  it('the messages of a process on a channel come in the order in which they were published', async () => {
    const [sender, receiver] = [await connect(), await listener()]
    const texts = Array.from({ length: 500 }, (_, i) => `${i}`)
    await Promise.all(texts.map((text) => send(sender, text)))
    await until(() => receiver.heard.length >= texts.length, { what: 'all messages' })
    expect(receiver.heard).to.deep.equal(texts)
  })

  it('a message to a channel without a subscription is lost, and its publisher learns that', async () => {
    const sender = await connect()
    expect(await send(sender, 'lost')).to.equal(0)
    const late = await listener()
    await settle(late)
    expect(late.heard).to.deep.equal([])
  })

  it('after the subscription was ended nothing comes, until it is made again', async () => {
    const [sender, one, two] = [await connect(), await listener(), await listener()]
    await one.bus.unsubscribe('a')
    expect(await send(sender, 'missed')).to.equal(1)
    await one.bus.subscribe('a', (message) => one.heard.push(message.toString()))
    await settle(one, two)
    expect([one.heard, two.heard]).to.deep.equal([[], ['missed']])
  })

  it('each receiver gets the bytes that were published, in memory of its own', async () => {
    const sender = await connect()
    const messages = [
      Buffer.alloc(0),
      Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
      Buffer.alloc(300_000, 0xe2),
    ]
    const received: Buffer[][] = [[], []]
    for (const each of received) {
      await (await connect()).subscribe('a', (message) => {
        each.push(Buffer.from(message))
        message.fill(0)
      })
    }
    for (const message of messages) await sender.publish('a', message)
    await until(() => received.every(({ length }) => length === messages.length), { what: 'the messages' })
    expect(received).to.deep.equal([messages, messages])
  })

  it('an error that a subscriber throws is an uncaught one, and keeps no other message back', async () => {
    const [sender, failing, other] = [await connect(), await connect(), await listener()]
    const heard: string[] = []
    await failing.subscribe('a', (message) => {
      heard.push(message.toString())
      if (heard.length === 1) throw new Error('of the subscriber')
    })
    const uncaught = await uncaughtDuring(async () => {
      await send(sender, 'one')
      await send(sender, 'two')
      await until(() => heard.length + other.heard.length === 4, { what: 'both messages' })
    })
    expect(uncaught.map(String)).to.deep.equal(['Error: of the subscriber'])
    expect([heard, other.heard]).to.deep.equal([
      ['one', 'two'],
      ['one', 'two'],
    ])
  })

  it('subscriptions that are made again bring each message once, over a new connection, too', async () => {
    const [sender, receiver] = [await connect(), await listener()]
    await receiver.bus.resubscribe()
    await send(sender, 'once')
    await settle(receiver)
    expect(receiver.heard).to.deep.equal(['once'])
    receiver.bus.reconnect()
    await until(() => receiver.heard.includes('again') || send(sender, 'again').then(() => false), {
      what: 'a message',
    })
  })

  it('while the connection is away messages are refused within two seconds, and afterwards the subscriptions hold as before', async () => {
    const [sender, receiver] = [await connect(), await listener()]
    expect(sender.awayMs()).to.equal(0)
    await cut()
    const since = elapsedMs()
    await until(
      () =>
        send(sender, 'refused').then(
          () => false,
          () => true,
        ),
      { what: 'a refusal', withinMs: 2_000 },
    )
    expect(elapsedMs() - since).to.be.below(2_000)
    await until(() => sender.awayMs() > 0, { what: 'the time to be counted' })
    const refused = await receiver.bus.subscribe('b', () => {}).catch((cause: unknown) => cause)
    expect(refused).to.be.instanceOf(Error)
    await mend()
    await until(() => send(sender, 'back').catch(() => 0), { what: 'the subscription' })
    await settle(receiver)
    expect(receiver.heard.at(-1)).to.equal('back')
    expect(sender.awayMs()).to.equal(0)
    expect(await send(sender, 'nobody', 'b'), 'a refused subscription is not made later').to.equal(0)
  })

  it('a bus that was closed refuses messages, and the others do not count its subscriptions', async () => {
    const [sender, receiver] = [await connect(), await listener()]
    await receiver.bus.close()
    await until(async () => (await send(sender, 'gone')) === 0, { what: 'the subscription to end' })
    expect(await send(receiver.bus, 'no').catch((cause: unknown) => cause)).to.be.instanceOf(Error)
    expect(receiver.heard).to.deep.equal([])
  })

  describe('requests over it', () => {
    /** Answers each request that comes over channel `server`. */
    async function serve(): Promise<void> {
      const server = await connect()
      await server.subscribe('server', (id) => {
        void server.publish('client', Buffer.from(JSON.stringify({ id: Number(id), value: `answer ${id}` })))
      })
    }

    /** A process that calls the server. */
    async function client() {
      const [bus, calls] = [await connect(), new Calls()]
      await bus.subscribe('client', (message) => {
        const { id, ...answer } = JSON.parse(message.toString()) as { id: number }
        calls.settle(id, Buffer.from(JSON.stringify(answer)))
      })
      const sendTo = (id: number) =>
        bus.publish('server', Buffer.from(`${id}`)).then((count) => {
          if (count === 0) calls.failUndelivered(1)
        })
      const call = (options: { hasAlternative?: boolean; deadlineMs: number }) =>
        calls.call({ epoch: 1, send: (id) => void sendTo(id), limits: { ...options, resendMs: 20 }, ...options })
      return { call }
    }

    it('a request is answered, and again and again sent until then', async () => {
      const { call } = await client()
      const late = call({ deadlineMs: 10_000 })
      await serve()
      expect(await late).to.equal('answer 1')
      expect(await call({ deadlineMs: 10_000 })).to.equal('answer 2')
    })

    it('a request without an answer fails at its deadline, and at once where another process can be asked', async () => {
      const { call } = await client()
      const [since, beganAt] = [elapsedMs(), performance.now()]
      const failures = [{ deadlineMs: 200 }, { deadlineMs: 60_000, hasAlternative: true }].map((options) =>
        call(options).catch((cause: unknown) => cause),
      )
      for (const cause of await Promise.all(failures))
        expect(cause).to.include({ kind: 'unavailable', code: 'worker_silent' })
      // That clock stands still while others have the CPU: it is none to measure what must not come too early.
      expect(performance.now() - beganAt).to.be.at.least(199)
      expect(elapsedMs() - since).to.be.below(10_000)
    })
  })
}

/** The uncaught exceptions of this process while `act` runs, which are no failure of the test. */
async function uncaughtDuring(act: () => Promise<void>): Promise<unknown[]> {
  const usual = process.listeners('uncaughtException')
  const causes: unknown[] = []
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', (cause) => causes.push(cause))
  try {
    await act()
  } finally {
    process.removeAllListeners('uncaughtException')
    for (const listener of usual) process.on('uncaughtException', listener)
  }
  return causes
}
