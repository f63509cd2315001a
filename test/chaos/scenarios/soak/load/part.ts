import type { Effects } from '../../../effects.ts'
import type { World } from '../../../world.ts'
import type { FlowLoad } from '../../flows/load.ts'
import type { CustomerRun } from '../../ledger/customer-load.ts'
import type { PlanLoad } from '../../plans/load.ts'
import { attackInTurn, type Hostility, type Tarpit } from '../hostile/tenant.ts'
import type { Tenants } from '../tenants.ts'
import { serveCustomers } from './customers.ts'
import { replyToRequests } from './permissions.ts'
import { type CancelledPlan, cancelPlans } from './plan-cancels.ts'
import type { Read } from './reader.ts'
import { type Probe, probeRoutes } from './routes.ts'
import { actOutside, type Cancelled, cancelRuns, followRuns, type Loading } from './runs.ts'
import { type SeenSession, talk } from './sessions.ts'
import { intrude } from './strangers.ts'

/** The answers and streams that clients read in one part of a soak. */
export type Seen = {
  runs: Read[]
  cancelled: Cancelled[]
  sessions: SeenSession[]
  customers: { names: string[]; runs: CustomerRun[] }
  plans: CancelledPlan[]
  probes: Probe[]
  intrusions: number
  hostility: Hostility
}

export type PartDeps = {
  world: World
  effects: Effects
  tenants: Tenants
  tarpit: Tarpit
  flows: FlowLoad
  plans: PlanLoad
}

/** Clients of each kind. */
const CLIENTS = {
  follow: 10,
  act: 4,
  talk: 8,
  permit: 4,
  cancel: 2,
  serve: 6,
  cancelPlans: 2,
  flows: 5,
  plans: 4,
}
const CUSTOMERS = 5

/** Keeps all kinds of work going until the signal is aborted. Resolves when all of it has ended. */
export async function loadCluster(
  deps: PartDeps,
  name: string,
  { random, signal }: Omit<Loading, 'world'>,
): Promise<Seen> {
  const { world, effects, tenants, tarpit, flows, plans } = deps
  const clients = async <T>(kind: keyof typeof CLIENTS, work: (loading: Loading) => Promise<T[]>): Promise<T[]> => {
    const fork = (n: number) => random.fork(`${kind} ${n}`)
    const all = Array.from({ length: CLIENTS[kind] }, (_, n) => work({ world, random: fork(n), signal }))
    return (await Promise.all(all)).flat()
  }
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => `${name}-${n}`)
  const lastIds = () => idsIn(deps)
  let client = 0
  const hostile = { headers: tenants.hostile, tarpit: tarpit.url }
  const [followed, acted, permitted, cancelled, sessions, served, cancelledPlans, hostility, probes, intrusions] =
    await Promise.all([
      clients('follow', followRuns),
      clients('act', (loading) => actOutside(loading, effects)),
      clients('permit', replyToRequests),
      clients('cancel', cancelRuns),
      clients('talk', talk),
      clients('serve', (loading) => serveCustomers(loading, { name: `${name} ${client++}`, customers })),
      clients('cancelPlans', cancelPlans),
      attackInTurn({ world, random: random.fork('hostile'), signal }, hostile),
      probeRoutes(world, signal),
      intrude({ world, random: random.fork('intruder'), signal }, tenants, lastIds),
      flows.run(signal),
      plans.run(CLIENTS.plans, signal),
    ])
  return {
    ...{ runs: [...followed, ...acted, ...permitted], cancelled, sessions, probes, intrusions, hostility },
    ...{ customers: { names: customers, runs: served }, plans: cancelledPlans },
  }
}

export const FLOW_CALLERS = CLIENTS.flows

/** Ids of the owner that are in use now. */
function idsIn({ world, flows, plans }: PartDeps) {
  const last = world.history.slice(-200)
  return {
    runs: last.flatMap((entry) => (entry.kind === 'opened' ? [entry.run] : [])),
    plans: plans.plans.slice(-20).flatMap(({ view }) => (view ? [view.id] : [])),
    dispatches: flows.answers.slice(-20).flatMap(({ traceId }) => (traceId ? [traceId] : [])),
  }
}
