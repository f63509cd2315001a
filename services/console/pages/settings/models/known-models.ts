import type { Schema } from '../../../../../shared/client/api.ts'

type Instance = Schema<'Instance'>
type Kind = Schema<'ProviderList'>['providers'][number]
type Run = Pick<Schema<'Run'>, 'status' | 'code' | 'ended_at'>

export type Model = {
  id: string
  /** In tokens; `undefined` if neither the provider nor the price catalogue contains it. */
  context: number | undefined
  /** US dollars per million tokens. */
  price: { input: number; output: number } | undefined
  probe: Schema<'Probe'> | undefined
  /** The roles that it serves. */
  roles: readonly Role[]
}

export type Routing = Schema<'Routing'>
export type Role = keyof Routing

/** The roles, each with its purpose. */
export const ROLES: Readonly<Record<Role, string>> = {
  main: 'runs and messages',
  subagent: 'sub-agents',
  plan: 'steps of plans',
  compact: 'summaries of long conversations',
  transcription: 'recordings',
}

export const rolesIn = (routing: Routing): readonly (readonly [Role, NonNullable<Routing[Role]>])[] =>
  (Object.keys(ROLES) as Role[]).flatMap((role) => (routing[role] ? [[role, routing[role]] as const] : []))

type Known = { instance: Instance; kind: Kind | undefined; found: Schema<'Capabilities'> | undefined; routing: Routing }

/** The models of a provider: first the used models, then the tried models, then models with a known price. */
export function modelsOf({ instance, kind, found, routing }: Known): Model[] {
  const own = rolesIn(routing).filter(([, route]) => route.instance === instance.name)
  const listed = new Map(found?.discovery?.models.map((model) => [model.id, model]))
  const probes = new Map(found?.probes.map((probe) => [probe.model, probe]))
  const catalogue = new Map(kind?.models.map((model) => [model.id, model]))
  const ids = new Set([...own.map(([, { model }]) => model), ...probes.keys(), ...listed.keys()])
  const models = [...ids].map((id): Model => {
    const { context_window: context, input_price: input, output_price: output } = catalogue.get(id) ?? {}
    const known = typeof input === 'number' && typeof output === 'number' ? { input, output } : undefined
    return {
      id,
      context: contextIn(listed.get(id)) ?? context ?? undefined,
      price: instance.prices?.[id] ?? known,
      probe: probes.get(id),
      roles: own.filter(([, { model }]) => model === id).map(([role]) => role),
    }
  })
  const rank = ({ roles, probe, price }: Model) => (roles.length > 0 ? 0 : probe ? 1 : price ? 2 : 3)
  return models.toSorted((one, other) => rank(one) - rank(other))
}

/** What the lists of providers call the length of a context. */
const CONTEXT_FIELDS: readonly string[] = [
  ...['context_length', 'context_window', 'inputTokenLimit', 'max_model_len', 'max_input_tokens'],
]

function contextIn(model: Readonly<Record<string, unknown>> = {}): number | undefined {
  const given = CONTEXT_FIELDS.map((field) => model[field])
  return given.find((value) => typeof value === 'number' && value > 0) as number | undefined
}

/** `everything` uses the model for every role except recordings, for which few models are suitable. */
export function routed(
  routing: Routing,
  role: Role | 'everything',
  route: { instance: string; model: string },
): Routing {
  if (role !== 'everything') return { ...routing, [role]: { ...routing[role], ...route } }
  const { main, transcription } = routing
  return { main: { ...main, ...route }, ...(transcription && { transcription }) }
}

export type InstanceState = {
  tone: '' | 'good' | 'warn' | 'bad'
  word: string
  /** Since when the state holds, or when it was last seen. */
  at?: string | null | undefined
}

/** The ends of runs that a provider causes, in the words for its card. */
const FAILURES: Readonly<Record<string, InstanceState>> = {
  provider_auth: { tone: 'bad', word: 'Refuses the key since' },
  provider_rejected: { tone: 'bad', word: 'Refuses requests since' },
  provider_unavailable: { tone: 'bad', word: 'Away since' },
  timeout: { tone: 'bad', word: 'Does not answer since' },
  provider_rate_limited: { tone: 'warn', word: 'Rate limited since' },
}

/** The state of a provider, derived from the newest runs of its model (the newest first), its limits, and the tests of its models. */
export function stateOf(found: Schema<'Capabilities'> | undefined, runs: readonly Run[]): InstanceState {
  const ended = runs.filter(({ ended_at: at, status }) => at !== null && status !== 'cancelled')
  const failure = FAILURES[ended[0]?.code ?? '']
  if (failure) {
    const end = ended.findIndex(({ code }) => FAILURES[code ?? ''] === undefined)
    return { ...failure, at: ended.at(end < 0 ? -1 : end - 1)?.ended_at }
  }
  if (found?.room.some(({ health }) => health !== 'healthy')) return { tone: 'bad', word: 'Most calls fail' }
  if (found?.room.some(isFull)) return { tone: 'warn', word: 'At its limit' }
  const seen = [ended[0]?.ended_at, found?.probes[0]?.probed_at, found?.discovery?.discovered_at]
  const at = seen
    .filter((time) => typeof time === 'string')
    .toSorted()
    .at(-1)
  return at === undefined ? { tone: '', word: 'Not tried yet' } : { tone: 'good', word: 'Works,', at }
}

const isFull = ({ waiting, ...room }: Schema<'Capabilities'>['room'][number]) =>
  waiting > 0 ||
  (room.tokens_per_minute !== null && room.used_tokens >= room.tokens_per_minute) ||
  (room.requests_per_minute !== null && room.used_requests >= room.requests_per_minute)
