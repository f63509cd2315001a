import fc from 'fast-check'
import { type Guarantee, noneOf } from '../../harness/guarantee.ts'
import { askedCall, pairsOfInputs } from '../../reading/fuzzed-calls.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { startConsole } from '../support/console.ts'
import { MockedAsks } from './mocked-asks.ts'

/** Pairs of inputs in one list of waiting requests. */
const PAIRS = 100

const HIDDEN = /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\u00a0]/

/** Shows fuzzed calls of tools on the page that allows them: two that differ are never shown alike. */
export async function tryCalls(count: number, seed: number): Promise<Guarantee[]> {
  await using folder = await makeTempFolder()
  const pages = await startConsole()
  const [alike, hidden]: [string[], string[]] = [[], []]
  let shown = 0
  try {
    const page = await pages.open('/')
    const asks = await MockedAsks.in(pages, page)
    for (let batch = 0; shown < count; batch++) {
      const pairs = fc.sample(pairsOfInputs, { numRuns: PAIRS, seed: seed + batch })
      const inputs = pairs.flatMap(({ name, input, other }) => [input, other].map((each) => ({ name, input: each })))
      const calls = await Promise.all(
        inputs.map(async ({ name, input }) => ({ name, ...(await askedCall(folder.path, name, input)) })),
      )
      await asks.open(calls)
      const texts = await asks.texts(calls.length)
      const known = new Map<string, string>()
      for (const [i, text] of texts.entries()) {
        const { name, input } = inputs[i] ?? {}
        const key = `${name} ${JSON.stringify(input)}`
        if ((known.get(text) ?? key) !== key) alike.push(`${known.get(text)} and ${key}`)
        known.set(text, key)
        if (HIDDEN.test(text)) hidden.push(key)
      }
      shown += texts.length
    }
    pages.expectNoFaults()
  } finally {
    await pages.close()
  }
  return [
    noneOf(`of ${shown} fuzzed calls, two that differ and are shown alike`, alike),
    noneOf('calls that hide something', hidden),
  ]
}
