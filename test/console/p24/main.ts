import { runScenarios } from '../../harness/scenarios.ts'
import { tryCalls } from './calls.ts'
import { tryIssuer, tryPastedTokens } from './people.ts'
import { trySizes } from './sizes.ts'
import { tryTexts } from './texts.ts'

const promise = 'what a person sees is theirs, and is what will run'

await runScenarios({
  name: 'console:attack',
  scenarios: [
    {
      ...{ id: 'P24', promise: `${promise}: two people in one tab` },
      run: async ({ isFull }) => [...(await tryPastedTokens()), ...(isFull ? await tryIssuer() : [])],
    },
    {
      ...{ id: 'P24', promise: `${promise}: fuzzed calls` },
      run: ({ isFull, random }) => tryCalls(isFull ? 10_000 : 1_000, random.between(0, 2 ** 30)),
    },
    {
      ...{ id: 'P24', promise: `${promise}: texts of 60,000 characters` },
      run: ({ isFull }) => tryTexts(isFull ? Number.POSITIVE_INFINITY : 6),
    },
    { id: 'P24', promise: `${promise}: long pages`, run: ({ say }) => trySizes(say) },
  ],
  lanes: 1,
  takes: { short: 'two minutes', full: 'a quarter of an hour' },
})
