import { expect } from 'chai'
import { LATER, PullIterator } from '../../../shared/kernel/async/pull-iterator.ts'

type Value = { n: number }

/** Yields the values that are given to it: those that are there at once, and later ones. */
class Values extends PullIterator<Value> {
  readonly #given: (Value | Error | Promise<Value> | undefined)[]
  stops = 0
  pulls = 0

  constructor(...given: (number | Error | Promise<Value> | undefined)[]) {
    super()
    this.#given = given.map((each) => (typeof each === 'number' ? { n: each } : each))
  }

  give(...values: (Value | Error)[]): void {
    for (const value of values) {
      this.#given.push(value)
      this.wake()
    }
  }

  protected override pull(): Value | undefined | typeof LATER | Promise<Value | undefined> {
    this.pulls++
    if (this.#given.length === 0) return LATER
    const value = this.#given.shift()
    if (value instanceof Error) throw value
    return value
  }

  protected override stop(): void {
    this.stops++
  }
}

const END = { done: true, value: undefined }

describe('an iteration that pulls its values', () => {
  it('yields what is there and what comes later, in order, to its end', async () => {
    const values = new Values(1, Promise.resolve({ n: 2 }))
    const read: number[] = []
    const reading = (async () => {
      for await (const { n } of values) {
        read.push(n)
        if (n === 3) break
      }
    })()
    setImmediate(() => values.give({ n: 3 }, { n: 4 }))
    await reading
    expect(read).to.deep.equal([1, 2, 3])
    expect([values.stops, values.pulls]).to.deep.equal([1, 4])
  })

  it('stops once at its end, and pulls nothing more', async () => {
    const values = new Values(1, undefined, 2)
    expect(await values.next()).to.deep.equal({ done: false, value: { n: 1 } })
    for (let i = 0; i < 3; i++) expect(await values.next()).to.deep.equal(END)
    expect(await values.return()).to.deep.equal(END)
    expect([values.stops, values.pulls]).to.deep.equal([1, 2])
  })

  it('stops in the call of `return`, and a value that is waited for is the end then', async () => {
    const values = new Values()
    const waiting = values.next()
    const left = values.return()
    expect(values.stops).to.equal(1)
    expect(await Promise.all([waiting, left, values.next()])).to.deep.equal([END, END, END])
    expect([values.stops, values.pulls]).to.deep.equal([1, 1])
  })

  it('rejects with what a pull throws, at once or later', async () => {
    const values = new Values(new Error('at once'))
    expect(await values.next().catch(String)).to.equal('Error: at once')
    const waiting = values.next().catch(String)
    values.give(new Error('later'))
    expect(await waiting).to.equal('Error: later')
    expect(values.stops).to.equal(0)
  })
})
