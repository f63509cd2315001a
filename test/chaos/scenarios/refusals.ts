import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import type { Faults } from '../proxy/faults.ts'
import { MongoProxy } from '../proxy/mongo-proxy.ts'
import { gatewayFor } from '../sessions.ts'
import { World } from '../world.ts'
import { Standalone } from './ledger/standalone.ts'
import { CountingModel, measureRefusals, measureStarts, type RefusalSize, type StoreFault } from './refusals/measure.ts'

const SHORT: RefusalSize = { clients: 6, tries: 0 }
const FULL: RefusalSize = { clients: 24, tries: 10_000 }
const TIMES = { short: { store: 1_500, redis: 2_500 }, full: { store: 8_000, redis: 6_000 } }
const SLOW = { latencyMs: 300, jitterMs: 1_700 }

/** Takes the stores of both forms away, freezes and slows them, while clients start runs and send messages. */
export const refusals: Scenario = {
  id: 'P22',
  promise:
    'what was refused did not happen: nothing of it reaches a model, a history or the events, and what was accepted happens once',
  run: async (options) => [...(await inCluster(options)), ...(await standalone(options))],
}

async function inCluster({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  await ensureMongod(say)
  await using mongo = await startMongoInMemory()
  await using proxy = await MongoProxy.start({ target: mongo.members[0]?.host ?? '', random: random.fork('proxy') })
  await using model = await CountingModel.start()
  const env = { MONGODB_URL: proxy.url, DURABILITY: 'runs', ...model.env }
  await using world = await World.open({ random, gateways: isFull ? 2 : 1, workers: 2, executors: 1, env })
  const times = isFull ? TIMES.full : TIMES.short
  const fault = (what: string, faults: Faults): StoreFault => ({
    ...{ what, forMs: times.store },
    inject: () => proxy.set(faults),
    heal: () => proxy.set({}),
  })
  const faults = [
    fault('MongoDB slow', SLOW),
    fault('MongoDB frozen', { blackhole: 'both' }),
    fault('MongoDB away', { refuse: true }),
    {
      ...{ what: 'Redis frozen', forMs: times.redis },
      inject: () => world.redis.kill('SIGSTOP'),
      heal: () => world.redis.kill('SIGCONT'),
    },
  ]
  let n = 0
  const urlOf = () => gatewayFor(world, n++).url
  const size = isFull ? FULL : SHORT
  const measuring = { form: { name: 'cluster', urlOf, faults }, model, size, random, say }
  return [...(await measureRefusals(measuring)), ...(isFull ? await measureStarts(measuring) : [])]
}

/** Another process that writes to the file keeps the product from it: a statement fails after 200 ms. */
async function standalone({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  await using model = await CountingModel.start()
  await using product = new Standalone({ DURABILITY: 'runs', ...model.env })
  await product.start()
  using other = new DatabaseSync(join(product.dataDir, 'agent-engine.db'))
  const lock: StoreFault = {
    ...{ what: 'SQLite locked', forMs: (isFull ? TIMES.full : TIMES.short).store },
    inject: () => other.exec('BEGIN IMMEDIATE'),
    heal: () => other.exec('COMMIT'),
  }
  const size = isFull ? { ...FULL, tries: FULL.tries / 10 } : SHORT
  return await measureRefusals({
    form: { name: 'standalone', urlOf: () => product.url, faults: [lock] },
    model,
    size,
    random,
    say,
  })
}
