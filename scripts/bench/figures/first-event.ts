import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { addedRatio, median } from '../statistics.ts'

const TOKENS = 5
const WARM_UP_ROUNDS = 100

/** Time that a gateway adds to the provider's own, with one request at a time. Provider, baseline and product alternate. */
export const firstEvent: Figure = {
  name: 'first-event',
  title: 'time to first text event, added, p50',
  goal: { atMost: 3.2 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  using direct = new Client(await bench.provider(), bench.signal)
  using baseline = new Client(await bench.baseline(), bench.signal)
  using ours = new Client(await bench.ours(), bench.signal)
  const clients = { direct, baseline, ours }
  const times: Record<Server, number[]> = { direct: [], baseline: [], ours: [] }
  const rounds = bench.pick(1000, 400)
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    for (const name of orderOf(round)) {
      const { firstMs } = await clients[name].stream(TOKENS)
      if (round >= 0) times[name].push(firstMs)
    }
  }
  const shown = Object.entries(times).map(([name, values]) => `${name} ${median(values).toFixed(3)} ms`)
  return { value: addedRatio(times), detail: shown.join(', ') }
}

type Server = 'direct' | 'baseline' | 'ours'

/** Alternates the direction, so that none always runs after the same other one. */
const orderOf = (round: number): Server[] =>
  round % 2 === 0 ? ['direct', 'baseline', 'ours'] : ['ours', 'baseline', 'direct']
