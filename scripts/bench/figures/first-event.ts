import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { addedRatio, median } from '../statistics.ts'

const TOKENS = 5
const WARM_UP_ROUNDS = 100

/** What a gateway adds to the provider's own time, one request at a time, all three in rotation. */
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
  const times: Record<Who, number[]> = { direct: [], baseline: [], ours: [] }
  const rounds = bench.pick(1000, 400)
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    for (const who of inTurn(round)) {
      const { firstMs } = await clients[who].stream(TOKENS)
      if (round >= 0) times[who].push(firstMs)
    }
  }
  const shown = Object.entries(times).map(([who, values]) => `${who} ${median(values).toFixed(3)} ms`)
  return { value: addedRatio(times), detail: shown.join(', ') }
}

type Who = 'direct' | 'baseline' | 'ours'

/** Forwards and backwards, so that none always bears what another's request leaves to do. */
const inTurn = (round: number): Who[] =>
  round % 2 === 0 ? ['direct', 'baseline', 'ours'] : ['ours', 'baseline', 'direct']
