import { randomBytes } from 'node:crypto'
import { type MongoSet, startMongoSet } from '../../../../scripts/local-services/mongo.ts'
import { ensureMongod } from '../../../../scripts/local-services/mongo-server.ts'
import type { Random } from '../../../harness/seed.ts'
import { EFFECTS_ENV, type Effects, startEffects } from '../../effects.ts'
import { World } from '../../world.ts'
import { EchoModel } from '../flows/model.ts'
import { PROVIDER_KEY, prepareFlow } from '../flows/setup.ts'
import { StepModel } from '../plans/model.ts'
import { Clocks } from './faults/clock.ts'
import { preparePatternFlow } from './hostile/attacks.ts'
import { attackerOf, Tarpit } from './hostile/tenant.ts'
import { SecretWatch } from './secrets.ts'
import { openTenants, type Tenants } from './tenants.ts'

export type SoakOptions = { minutes: number; random: Random; say: (line: string) => void }

/** A cluster with everything around it: tenants, models, a server for effects, clocks that can be shifted. Disposing of it ends everything. */
export type Bed = AsyncDisposable & {
  world: World
  mongo: MongoSet
  tenants: Tenants
  clocks: Clocks
  effects: Effects
  echoes: EchoModel
  steps: StepModel
  secrets: SecretWatch
  /** The receiver and provider of the hostile tenant. */
  tarpit: Tarpit
}

const SIZE = { gateways: 2, workers: 3, executors: 2 }
const MONGO_MEMBERS = 3

/** Starts everything, and resolves when each gateway has used each worker and has run a flow. */
export async function openBed({ random, say }: SoakOptions): Promise<Bed> {
  await using stack = new AsyncDisposableStack()
  await ensureMongod(say)
  const mongo = stack.use(await startMongoSet(MONGO_MEMBERS))
  const echoes = stack.use(await EchoModel.start())
  const steps = stack.use(await StepModel.start())
  const hostileEchoes = stack.use(await EchoModel.start())
  const tarpit = stack.use(await Tarpit.start())
  const tenants = stack.use(await openTenants())
  const clocks = stack.use(await Clocks.open(say))
  const masterKey = randomBytes(32).toString('base64')
  const [owner = '', stranger = ''] = tenants.secrets
  const secrets = new SecretWatch({ masterKey, owner, stranger, provider: PROVIDER_KEY })
  const settings = { ...tenants.env, ...EFFECTS_ENV, MASTER_KEY: masterKey, MONGODB_URL: mongo.url, ...LIMITS }
  const world = stack.use(
    await World.open({
      ...SIZE,
      random,
      hasProxies: true,
      headers: tenants.owner,
      onOutput: secrets.take,
      // Plans use the model of their executor; the other runs use the demo model.
      env: (role, name) => ({ ...settings, ...clocks.envOf(name), ...(role === 'executor' && steps.env) }),
    }),
  )
  const effects = stack.use(await startEffects((entry) => world.record(entry)))
  const urls = world.gateways.map(({ url }) => url)
  await prepareFlow(urls, echoes.url, tenants.owner)
  await prepareFlow(urls, hostileEchoes.url, tenants.hostile)
  const over = AbortSignal.abort()
  await preparePatternFlow(attackerOf({ world, random, headers: tenants.hostile, tarpit: tarpit.url, over }))
  const all = stack.move()
  const parts = { world, mongo, tenants, clocks, effects, echoes, steps, secrets, tarpit }
  return { ...parts, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

const LIMITS = {
  /** A run that waits for a permission which its client could not answer ends within a part. */
  PERMISSION_TIMEOUT_SECS: '15',
  /** Half of it is enough for all runs of the owner on one worker, and less than the hostile tenant wants. */
  RUNS_PER_WORKER: '80',
}
