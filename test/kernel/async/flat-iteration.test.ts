import { expect } from 'chai'
import { FlatIteration, inPlace, type Nested } from '../../../shared/kernel/async/flat-iteration.ts'

type Values = Nested<string, string> & AsyncGenerator<string, string>
/** How a generator passes on the values of another one. */
type Pass = (values: Values) => Generator<unknown, string> | AsyncGenerator<unknown, string>

/** Notes what happens; how the innermost generator goes on after `a` is chosen. */
function nested(
  log: string[],
  pass: Pass,
  end: 'returns' | 'throws' | 'cleans up late' | 'cannot be left' = 'returns',
) {
  async function* inner(): AsyncGenerator {
    try {
      yield 'a'
      if (end === 'throws') throw new Error('broken')
      yield 'b'
      return 'inner'
    } finally {
      log.push('inner left')
      if (end === 'cleans up late') yield 'late'
      if (end === 'cannot be left') await Promise.reject(new Error('stuck'))
    }
  }
  async function* middle(): AsyncGenerator {
    try {
      const result = yield* pass(inner() as Values)
      log.push(`middle has ${result}`)
      yield result
      return 'middle'
    } finally {
      log.push('middle left')
    }
  }
  return (async function* (): AsyncGenerator {
    try {
      yield 'first'
      log.push(`outer has ${yield* pass(middle() as Values)}`)
      log.push(`outer has ${yield* pass(middle() as Values)}`)
    } catch (cause) {
      log.push(`outer caught ${(cause as Error).message}`)
      yield 'instead'
      throw cause
    } finally {
      log.push('outer left')
    }
    return 'end'
  })() as Values
}

type Iteration = AsyncIterator<unknown, unknown, undefined>
const flat: Pass = async function* (values) {
  return (yield inPlace(values)) as string
}
async function* star(values: Values): AsyncGenerator<unknown, string> {
  return yield* values
}

/** Reads `count` values, leaves with `return`, and reads on. Returns all that was seen, in order. */
async function history(make: (log: string[]) => Iteration, count: number): Promise<unknown[]> {
  const log: unknown[] = []
  const iteration = make(log as string[])
  const note = (step: Promise<unknown>) => step.then((each) => log.push(each)).catch((cause) => log.push(String(cause)))
  for (let i = 0; i < count; i++) await note(iteration.next())
  await note(iteration.return?.() ?? Promise.reject(new Error('no return')))
  for (let i = 0; i < 3; i++) await note(iteration.next())
  return log
}

describe('a flat iteration', () => {
  for (const end of ['returns', 'throws', 'cleans up late', 'cannot be left'] as const)
    it(`is the same as nested generators, wherever it is left, when the innermost one ${end}`, async () => {
      for (let count = 0; count < 12; count++) {
        const expected = await history((log) => nested(log, star, end), count)
        const made = await history((log) => new FlatIteration(nested(log, flat, end)), count)
        expect(made, `left after ${count}`).to.deep.equal(expected)
      }
    })

  it('is left when the pending value has come, which its reader still gets', async () => {
    const log: string[] = []
    const iteration = new FlatIteration(nested(log, flat))
    await iteration.next()
    const [value, left] = await Promise.all([iteration.next(), iteration.return()])
    expect([value, left]).to.deep.equal([{ done: false, value: 'a' }, END])
    expect(log).to.deep.equal(['inner left', 'middle left', 'outer left'])
  })

  it('passes the steps of an iteration that is no generator, and leaves one that cannot be left', async () => {
    const step = { done: false, value: 'a' }
    const plain = { next: () => Promise.resolve(step) } as AsyncIterator<string, string, undefined>
    const iteration = new FlatIteration<string, string>(
      (async function* () {
        return yield inPlace(plain)
      })(),
    )
    expect(await iteration.next()).to.equal(step)
    expect([await iteration.return(), await iteration.next()]).to.deep.equal([END, END])
  })
})

const END = { done: true, value: undefined }
